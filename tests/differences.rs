//! The same hook, once in a real agent's own configuration and once in hookbus under the agent's own event name, has
//! the same outcome: exit code, requests to the model, files, answer, notices. Where the bus differs on purpose, mostly
//! by being stricter, a test says so.

use std::fs;

use hookbus_tests::agents::{Gemini, Hermes, Step};
use hookbus_tests::difference::Expected::{
    AnswerContains, ModelWasNotCalled, ModelWasSent, ToolDidNotRun, ToolRan,
};
use hookbus_tests::difference::{Case, on};
use hookbus_tests::home::Home;
use hookbus_tests::wiring::Agent;
use serde_json::json;

/// One test per case: the hooks, then the expected outcome.
macro_rules! same {
    ($agent:ty: $($name:ident: $case:expr => $($expected:expr),+;)*) => {
        $(#[test]
        fn $name() {
            $case.ends_the_same::<$agent>(&[$($expected),+]);
        })*
    };
}

/// One test per case: hooks whose block the agent ignores and hookbus does not.
macro_rules! stricter {
    ($agent:ty: $($name:ident: $case:expr;)*) => {
        $(#[test]
        fn $name() {
            $case.only_blocks_through_hookbus::<$agent>();
        })*
    };
}

mod in_hermes {
    use super::*;

    const BLOCK: &str = r#"echo '{"decision":"block","reason":"not today"}'"#;
    const ALLOW: &str = r#"echo '{"decision":"allow","reason":"why not"}'"#;

    fn tool() -> Case {
        on("pre_tool_call")
    }

    /// Edits a file, so that `pre_verify` fires.
    fn edit_script() -> Vec<Step> {
        let edit = json!({"path": "made.txt", "content": "made\n"});
        vec![Step::tool("write_file", edit), Step::text("Done."), Step::text("Done again.")]
    }

    same! { Hermes:
        a_decision_to_block_blocks: tool().does(BLOCK) => ToolDidNotRun, ModelWasSent("not today");
        an_action_to_block_blocks:
            tool().does(r#"echo '{"action":"block","message":"not today"}'"#)
            => ToolDidNotRun, ModelWasSent("not today");
        a_block_without_a_reason_gets_the_agents_own_reason:
            tool().does(r#"echo '{"decision":"block"}'"#)
            => ToolDidNotRun, ModelWasSent("Blocked by shell hook.");
        an_allow_lets_the_tool_run: tool().does(ALLOW) => ToolRan;
        a_command_line_is_split_as_the_agent_splits_it:
            tool().runs(r#"sh -c "echo '{\"decision\":\"block\",\"reason\":\"not today\"}'""#)
            => ToolDidNotRun, ModelWasSent("not today");
        a_command_line_is_run_without_a_shell:
            tool().runs(r#"echo '{"decision":"block","reason":"not today"}' | cat"#) => ToolRan;
        the_same_hook_twice_is_one_hook:
            on("pre_llm_call")
                .runs(r#"echo '{"context":"the moon is green"}'"#)
                .runs(r#"echo '{"context":"the moon is green"}'"#)
            => ModelWasSent("the moon is green");
        context_on_a_tool_call_is_ignored:
            tool().does(r#"echo '{"context":"the moon is green"}'"#) => ToolRan;
        a_rewrite_is_ignored:
            tool().does(r#"echo '{"hookSpecificOutput":{"tool_input":{"command":"true"}}}'"#)
            => ToolRan;
        a_stop_is_ignored:
            tool().does(r#"echo '{"continue":false,"stopReason":"enough"}'"#) => ToolRan;
        exit_1_without_text_is_ignored: tool().does("exit 1") => ToolRan;
        exit_1_with_text_is_ignored: tool().does("echo no >&2; echo no; exit 1") => ToolRan;
        exit_1_with_a_block_blocks:
            tool().does(r#"echo '{"decision":"block","reason":"not today"}'; exit 1"#)
            => ToolDidNotRun, ModelWasSent("not today");
        exit_2_with_text_on_stdout_is_ignored: tool().does("echo no; exit 2") => ToolRan;
        exit_2_without_text_is_ignored: tool().does("exit 2") => ToolRan;
        a_command_that_does_not_exist_is_ignored: tool().runs("/does/not/exist") => ToolRan;
        exit_127_is_ignored: tool().does("echo no such thing >&2; exit 127") => ToolRan;
        garbage_is_ignored: tool().does("echo all is well") => ToolRan;
        an_unknown_word_is_ignored:
            tool().does(r#"echo '{"decision":"blok","reason":"not today"}'"#) => ToolRan;
        a_block_after_a_stray_line_is_ignored:
            tool().does(r#"echo checking; echo '{"decision":"block","reason":"not today"}'"#)
            => ToolRan;
        a_hook_that_takes_too_long_is_ignored: tool().does("exec sleep 9").within(1) => ToolRan;
        a_hook_that_crashes_is_ignored: tool().does("ulimit -c 0; kill -SEGV $$") => ToolRan;
        a_block_overrides_an_allow_after_it:
            tool().does(BLOCK).does(ALLOW) => ToolDidNotRun, ModelWasSent("not today");
        a_block_overrides_an_allow_before_it:
            tool().does(ALLOW).does(BLOCK) => ToolDidNotRun, ModelWasSent("not today");
        the_first_of_two_blocks_counts:
            tool().does(BLOCK).does(r#"echo '{"action":"block","message":"never"}'"#)
            => ToolDidNotRun, ModelWasSent("not today");
        a_matcher_that_is_the_whole_name_matches:
            tool().does(BLOCK).matching("term.*") => ToolDidNotRun;
        a_matcher_that_is_part_of_the_name_does_not_match:
            tool().does(BLOCK).matching("term").matches_no_hook() => ToolRan;
        a_matcher_that_is_no_regex_is_a_name:
            tool().does(BLOCK).matching("*").matches_no_hook() => ToolRan;
        context_reaches_the_model:
            on("pre_llm_call").does(r#"echo '{"context":"the moon is green"}'"#)
            => ModelWasSent("the moon is green");
        two_contexts_reach_the_model:
            on("pre_llm_call")
                .does(r#"echo '{"context":"the moon is green"}'"#)
                .does(r#"echo '{"context":"the sun is blue"}'"#)
            => ModelWasSent(r"the moon is green\n\nthe sun is blue");
        text_is_no_context: on("pre_llm_call").does("echo the moon is green") => ToolRan;
        a_block_of_the_turn_is_ignored: on("pre_llm_call").does(BLOCK) => ToolRan;
        a_continue_before_the_end_makes_the_agent_continue:
            on("pre_verify")
                .does(r#"[ -e ../done ] || { : > ../done; echo '{"action":"continue","message":"run the tests"}'; }"#)
                .playing(edit_script())
            => ModelWasSent("run the tests"), AnswerContains("Done again.");
        a_block_before_the_end_makes_the_agent_continue:
            on("pre_verify")
                .does(r#"[ -e ../done ] || { : > ../done; echo '{"decision":"block","reason":"run the tests"}'; }"#)
                .playing(edit_script())
            => ModelWasSent("run the tests"), AnswerContains("Done again.");
        a_block_before_the_end_without_a_message_leaves_the_decision_to_the_next_hook:
            on("pre_verify")
                .does(r#"echo '{"decision":"block"}'"#)
                .does(r#"[ -e ../done ] || { : > ../done; echo '{"decision":"block","reason":"run the tests"}'; }"#)
                .playing(edit_script())
            => ModelWasSent("run the tests"), AnswerContains("Done again.");
        a_block_of_an_event_without_answers_is_ignored:
            on("post_tool_call").does(BLOCK) => ToolRan, ModelWasSent("it is made");
    }

    stricter! { Hermes:
        exit_2_with_text_on_stderr_blocks_though_hermes_ignores_it:
            tool().does("echo not today >&2; exit 2");
        a_deny_blocks_though_hermes_ignores_it:
            tool().does(r#"echo '{"decision":"deny","reason":"not today"}'"#);
        a_permission_that_is_denied_blocks_though_hermes_ignores_it:
            tool().does(
                r#"echo '{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"not today"}}'"#,
            );
        a_block_in_capitals_blocks_though_hermes_ignores_it:
            tool().does(r#"echo '{"decision":"BLOCK","reason":"not today"}'"#);
        an_ask_blocks_though_hermes_ignores_it:
            tool().does(r#"echo '{"decision":"ask","reason":"not today"}'"#);
    }

    /// Hermes writes a context of more than 10,000 characters to a file. Two contexts arrive as one from hookbus.
    #[test]
    fn contexts_that_are_too_long_together_are_written_to_one_file() {
        let case = on("pre_llm_call")
            .does(r#"printf '{"context":"%06000d"}' 1"#)
            .does(r#"printf '{"context":"%06000d"}' 2"#);
        let direct = case.direct::<Hermes>();
        assert!(!direct.sent_to_the_model().contains("hook_outputs"));
        let through = case.through::<Hermes>(&Home::new());
        assert!(through.sent_to_the_model().contains("hook_outputs"));
        let folder = through.home.join(".hermes/hook_outputs");
        let session = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
        let file = fs::read_dir(session).unwrap().next().unwrap().unwrap().path();
        let text = fs::read_to_string(file).unwrap();
        assert!(text.trim_end() == format!("{:06000}\n\n{:06000}", 1, 2), "{text}");
    }
}

mod in_gemini {
    use super::*;

    const DENY: &str = r#"echo '{"decision":"deny","reason":"not today"}'"#;
    const ALLOW: &str = r#"echo '{"decision":"allow","reason":"why not"}'"#;

    fn tool() -> Case {
        on("BeforeTool")
    }

    fn two_answers() -> Vec<Step> {
        vec![Step::text("Done."), Step::text("Done again.")]
    }

    same! { Gemini:
        a_deny_blocks: tool().does(DENY) => ToolDidNotRun, ModelWasSent("not today");
        a_block_blocks:
            tool().does(r#"echo '{"decision":"block","reason":"not today"}'"#)
            => ToolDidNotRun, ModelWasSent("not today");
        a_deny_without_a_reason_gets_the_agents_own_reason:
            tool().does(r#"echo '{"decision":"deny"}'"#)
            => ToolDidNotRun, ModelWasSent("No reason provided");
        an_allow_lets_the_tool_run: tool().does(ALLOW) => ToolRan;
        a_command_line_is_run_by_bash:
            tool().runs(
                r#"cat > /dev/null; echo "{\"decision\":\"deny\",\"reason\":\"not $(basename $GEMINI_PROJECT_DIR)\"}" | cat"#,
            )
            => ToolDidNotRun, ModelWasSent("not work");
        the_same_hook_twice_is_one_hook:
            on("BeforeAgent")
                .runs(r#"echo '{"hookSpecificOutput":{"additionalContext":"the moon is green"}}'"#)
                .runs(r#"echo '{"hookSpecificOutput":{"additionalContext":"the moon is green"}}'"#)
            => ModelWasSent("the moon is green");
        json_that_is_no_object_is_no_answer_and_no_message: tool().does("echo null") => ToolRan;
        a_rewrite_changes_what_runs:
            tool().does(r#"echo '{"hookSpecificOutput":{"tool_input":{"command":"echo something else"}}}'"#)
            => ToolDidNotRun, ModelWasSent("something else");
        a_rewrite_that_lacks_an_argument_fails_the_call:
            tool().does(r#"echo '{"hookSpecificOutput":{"tool_input":{"description":"x"}}}'"#)
            => ToolDidNotRun;
        the_last_of_two_rewrites_counts:
            tool()
                .does(r#"echo '{"hookSpecificOutput":{"tool_input":{"command":"echo one"}}}'"#)
                .does(r#"echo '{"hookSpecificOutput":{"tool_input":{"command":"echo the other"}}}'"#)
            => ToolDidNotRun, ModelWasSent("the other");
        a_stop_ends_the_run:
            tool().does(r#"echo '{"continue":false,"stopReason":"enough"}'"#) => ToolDidNotRun;
        a_message_is_shown: tool().does(r#"echo '{"systemMessage":"look here"}'"#) => ToolRan;
        a_suppressed_message_is_not_shown:
            tool().does(r#"echo '{"systemMessage":"look here","suppressOutput":true}'"#) => ToolRan;
        exit_1_without_text_is_ignored: tool().does("exit 1").ignoring_failure_report() => ToolRan;
        exit_1_with_text_is_a_warning:
            tool().does("echo no >&2; exit 1").ignoring_failure_report() => ToolRan;
        exit_1_with_a_deny_blocks:
            tool().does(r#"echo '{"decision":"deny","reason":"not today"}'; exit 1"#).ignoring_failure_report()
            => ToolDidNotRun, ModelWasSent("not today");
        exit_2_with_text_on_stderr_blocks:
            tool().does("echo not today >&2; exit 2").ignoring_failure_report()
            => ToolDidNotRun, ModelWasSent("not today");
        exit_2_with_text_on_stdout_blocks:
            tool().does("echo not today; echo never >&2; exit 2").ignoring_failure_report()
            => ToolDidNotRun, ModelWasSent("not today");
        exit_2_without_text_is_ignored: tool().does("exit 2").ignoring_failure_report() => ToolRan;
        exit_2_with_an_allow_lets_the_tool_run:
            tool().does(r#"echo '{"decision":"allow"}'; exit 2"#).ignoring_failure_report() => ToolRan;
        a_command_that_does_not_exist_blocks:
            tool().runs("/does/not/exist").ignoring_failure_report()
            => ToolDidNotRun, ModelWasSent("/does/not/exist");
        garbage_is_a_message: tool().does("echo all is well") => ToolRan;
        text_on_stderr_is_a_message: tool().does("echo all is well >&2") => ToolRan;
        a_deny_on_stderr_blocks:
            tool().does(r#"echo '{"decision":"deny","reason":"not today"}' >&2"#)
            => ToolDidNotRun, ModelWasSent("not today");
        a_deny_after_a_stray_line_is_a_message:
            tool().does(r#"echo checking; echo '{"decision":"deny","reason":"not today"}'"#)
            => ToolRan;
        a_hook_that_takes_too_long_is_ignored:
            tool().does("exec sleep 9").within(1).ignoring_failure_report() => ToolRan;
        a_hook_that_crashes_is_ignored:
            tool().does("ulimit -c 0; kill -SEGV $$").ignoring_failure_report() => ToolRan;
        a_hook_that_crashes_after_some_output_is_ignored:
            tool().does("ulimit -c 0; echo so far; kill -SEGV $$").ignoring_failure_report() => ToolRan;
        a_deny_overrides_an_allow_after_it:
            tool().does(DENY).does(ALLOW) => ToolDidNotRun, ModelWasSent(r"not today\nwhy not");
        a_deny_overrides_an_allow_before_it:
            tool().does(ALLOW).does(DENY) => ToolDidNotRun, ModelWasSent(r"why not\nnot today");
        a_later_allow_cancels_a_deny_of_the_model:
            on("BeforeModel").does(DENY).does(ALLOW) => ToolRan;
        a_later_deny_of_the_model_counts:
            on("BeforeModel").does(ALLOW).does(DENY) => ModelWasNotCalled;
        a_matcher_that_is_part_of_the_name_matches:
            tool().does(DENY).matching("shell") => ToolDidNotRun;
        a_matcher_that_is_not_in_the_name_does_not_match:
            tool().does(DENY).matching("^shell").matches_no_hook() => ToolRan;
        a_matcher_on_a_turn_is_ignored:
            on("BeforeAgent").does(DENY).matching("shell") => ModelWasNotCalled;
        a_matcher_on_a_session_is_a_whole_word:
            on("SessionStart")
                .does(r#"echo '{"hookSpecificOutput":{"additionalContext":"the moon is green"}}'"#)
                .matching("startup|resume")
                .matches_no_hook()
            => ToolRan;
        a_deny_of_the_turn_ends_it: on("BeforeAgent").does(DENY) => ModelWasNotCalled;
        a_stop_of_the_turn_ends_it:
            on("BeforeAgent").does(r#"echo '{"continue":false,"stopReason":"enough"}'"#)
            => ModelWasNotCalled;
        context_for_the_session_reaches_the_model:
            on("SessionStart")
                .does(r#"echo '{"hookSpecificOutput":{"additionalContext":"the <moon> is green"}}'"#)
            => ModelWasSent("is green");
        two_contexts_for_the_turn_reach_the_model:
            on("BeforeAgent")
                .does(r#"echo '{"hookSpecificOutput":{"additionalContext":"the moon is green"}}'"#)
                .does(r#"echo '{"hookSpecificOutput":{"additionalContext":"the sun is blue"}}'"#)
            => ModelWasSent(r"the moon is green\nthe sun is blue");
        context_after_a_tool_reaches_the_model:
            on("AfterTool").does(r#"echo '{"hookSpecificOutput":{"additionalContext":"the moon is green"}}'"#)
            => ToolRan, ModelWasSent("the moon is green");
        a_deny_after_a_tool_replaces_its_result:
            on("AfterTool").does(DENY) => ToolRan, ModelWasSent("not today");
        a_stop_after_a_tool_ends_the_run:
            on("AfterTool").does(r#"echo '{"continue":false,"stopReason":"enough"}'"#) => ToolRan;
        a_changed_request_is_sent_to_the_model:
            on("BeforeModel")
                .does(r#"echo '{"hookSpecificOutput":{"llm_request":{"model":"gemini-2.5-pro","config":{"temperature":0.5}}}}'"#)
            => ToolRan;
        a_changed_answer_is_shown:
            on("AfterModel")
                .does(r#"echo '{"hookSpecificOutput":{"llm_response":{"candidates":[{"content":{"role":"model","parts":["Replaced."]},"finishReason":"STOP"}]}}}'"#)
            => AnswerContains("Replaced.");
        a_deny_of_the_end_makes_the_agent_continue:
            on("AfterAgent")
                .does(r#"[ -e ../done ] || { : > ../done; echo '{"decision":"deny","reason":"run the tests"}'; }"#)
                .playing(two_answers())
            => ModelWasSent("run the tests"), AnswerContains("Done again.");
        two_choices_of_tools_are_merged:
            on("BeforeToolSelection")
                .does(r#"echo '{"hookSpecificOutput":{"toolConfig":{"mode":"ANY","allowedFunctionNames":["write_file"]}}}'"#)
                .does(r#"echo '{"hookSpecificOutput":{"toolConfig":{"mode":"AUTO","allowedFunctionNames":["read_file"]}}}'"#)
            => ToolRan;
        a_deny_of_the_models_answer_is_ignored:
            on("AfterModel").does(DENY) => ToolRan;
        a_stop_at_the_end_ends_the_run:
            on("AfterAgent").does(r#"echo '{"continue":false,"stopReason":"enough"}'"#)
            => ToolRan;
    }

    stricter! { Gemini:
        an_action_to_block_blocks_though_gemini_ignores_it:
            tool().does(r#"echo '{"action":"block","message":"not today"}'"#);
        a_permission_that_is_denied_blocks_though_gemini_ignores_it:
            tool().does(
                r#"echo '{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"not today"}}'"#,
            );
        a_deny_in_capitals_blocks_though_gemini_ignores_it:
            tool().does(r#"echo '{"decision":"DENY","reason":"not today"}'"#);
    }

    /// Without hookbus, Gemini says nothing about it.
    #[test]
    fn an_unknown_word_is_ignored_and_the_user_is_told() {
        let case = tool().does(r#"echo '{"decision":"blok","reason":"not today"}'"#);
        let (direct, through) = (case.direct::<Gemini>(), case.through::<Gemini>(&Home::new()));
        for run in [&direct, &through] {
            assert!(run.file("made.txt").is_some(), "{:#?}", run.outcome());
        }
        assert!(through.stderr.contains("unknown word"), "{}", through.stderr);
    }

    /// Without hookbus, any output of a hook sets the mode `AUTO` in the request.
    #[test]
    fn an_answer_without_a_choice_of_tools_does_not_change_the_request() {
        let case = on("BeforeToolSelection").does("echo '{}'");
        assert!(case.direct::<Gemini>().requests[0].get("toolConfig").is_some());
        let through = case.through::<Gemini>(&Home::new());
        assert_eq!(through.outcome(), Gemini::working("without hooks").go().outcome());
    }
}
