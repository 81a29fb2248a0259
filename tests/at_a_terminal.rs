//! A hook that asks, with the real Gemini CLI at a terminal: the only setting in which Gemini asks its user.

use hookbus_tests::agents::{Act, Gemini, Run};
use hookbus_tests::home::Home;
use hookbus_tests::wiring::Agent;

const CAREFUL: &str = "hooks:\n  tool.before:\n    - name: careful\n      rule: {ask: a person should look at this}\n";

/// Runs Gemini in `yolo` mode, where only a hook can make it ask, and answers the question.
fn run_with_answer(answer: &[Act]) -> (Run, Home) {
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
fn the_tool_runs_when_the_user_says_yes() {
    let (run, home) = run_with_answer(&[Act::Enter, Act::See("Done.")]);
    assert!(run.file("made.txt").is_some(), "the user allowed it:\n{}", run.stdout);
    let decision = &home.decisions()[0];
    assert_eq!(
        (&decision["outcome"], &decision["answer"]["decision"]),
        (&"ask".into(), &"ask".into())
    );
    assert_eq!(home.log(&["--name", "Notification"]).len(), 1, "Gemini asked");
}

#[test]
fn the_tool_does_not_run_when_the_user_says_no() {
    let (run, home) = run_with_answer(&[Act::Escape, Act::See("Type your message")]);
    assert_eq!(run.file("made.txt"), None, "the user did not allow it:\n{}", run.stdout);
    assert_eq!(home.decisions()[0]["outcome"], "ask");
}
