//! Colours by meaning, as `Paint` has them for lines: without colours, what is bad is bold, and marks say the rest.

use ratatui::style::{Color, Modifier, Style};

/// How the screens are coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Theme {
    /// Whether there are colours at all.
    pub(crate) colour: bool,
}

impl Theme {
    pub(crate) const fn bold() -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(crate) const fn dim() -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(crate) fn bad(self) -> Style {
        self.colour(Color::Red).add_modifier(if self.colour {
            Modifier::empty()
        } else {
            Modifier::BOLD
        })
    }

    pub(crate) fn good(self) -> Style {
        self.colour(Color::Green)
    }

    pub(crate) fn notable(self) -> Style {
        self.colour(Color::Cyan)
    }

    /// The line that is selected.
    pub(crate) const fn selected() -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// The border of the panel that keys go to.
    pub(crate) fn border(self, has_focus: bool) -> Style {
        if has_focus { self.notable().add_modifier(Modifier::BOLD) } else { Self::dim() }
    }

    fn colour(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }
}
