//! Real Gemini CLI at a terminal, before a person: the one place where somebody can be asked.

use hookbus_tests::agents::{Act, Gemini, Run};
use hookbus_tests::home::Home;
use hookbus_tests::wiring::Agent;

const CAREFUL: &str = "hooks:\n  tool.before:\n    - name: careful\n      rule: {ask: a person should look at this}\n";

/// Even in `yolo`, where Gemini itself would not ask.
fn asked(answer: &[Act]) -> (Run, Home) {
    let home = Home::with_hooks(CAREFUL);
    let gemini = Gemini::working("asked").through_everywhere(&home, "off");
    let before = [
        Act::See("Type your message"),
        Act::Type("make a file"),
        Act::Enter,
        Act::See("Allow execution"),
    ];
    let after = [Act::Type("/quit"), Act::Enter];
    let run = gemini.run_at_a_terminal(&[&before, answer, &after].concat());
    (run, home)
}

#[test]
fn a_question_is_put_to_the_person_who_says_yes() {
    let (run, home) = asked(&[Act::Enter, Act::See("Done.")]);
    assert!(run.file("made.txt").is_some(), "the person allowed it:\n{}", run.stdout);
    let decision = &home.decisions()[0];
    assert_eq!(
        (&decision["outcome"], &decision["answer"]["decision"]),
        (&"ask".into(), &"ask".into())
    );
    assert_eq!(home.log(&["--name", "Notification"]).len(), 1, "Gemini did ask");
}

#[test]
fn a_question_is_put_to_the_person_who_says_no() {
    let (run, home) = asked(&[Act::Escape, Act::See("Type your message")]);
    assert_eq!(run.file("made.txt"), None, "the person did not allow it:\n{}", run.stdout);
    assert_eq!(home.decisions()[0]["outcome"], "ask");
}
