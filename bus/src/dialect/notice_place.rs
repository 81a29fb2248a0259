//! Where an agent shows its user a text of the bus.

/// Where an agent shows its user a text of the bus, at one event and with one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticePlace {
    /// It shows the `systemMessage` of the answer.
    InAnswer,
    /// The client gets it beside the answer: on stderr, or over the bridge.
    Beside,
    /// It would show nothing here, or less than without the text.
    Nowhere,
}
