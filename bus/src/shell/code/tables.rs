//! The calls that are known, per language.

use super::languages::Language;

/// What a call with a certain name does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Meaning {
    /// A shell line, or a list of words.
    Runs,
    /// A program and a list of its words, or all words one by one.
    Executes,
    Deletes,
    DeletesTree,
    Writes,
    /// `open`: writes if the mode says so.
    Opens,
    /// Code of the same language.
    Evaluates,
}

const PYTHON: &[(&str, Meaning)] = &[
    ("os.system", Meaning::Runs),
    ("os.popen", Meaning::Runs),
    ("subprocess.run", Meaning::Runs),
    ("subprocess.call", Meaning::Runs),
    ("subprocess.check_call", Meaning::Runs),
    ("subprocess.check_output", Meaning::Runs),
    ("subprocess.Popen", Meaning::Runs),
    ("subprocess.getoutput", Meaning::Runs),
    ("subprocess.getstatusoutput", Meaning::Runs),
    ("sp.run", Meaning::Runs),
    ("Popen", Meaning::Runs),
    ("check_output", Meaning::Runs),
    ("check_call", Meaning::Runs),
    ("create_subprocess_shell", Meaning::Runs),
    ("pty.spawn", Meaning::Runs),
    ("system", Meaning::Runs),
    ("run", Meaning::Runs),
    ("os.execvp", Meaning::Executes),
    ("os.execv", Meaning::Executes),
    ("os.execl", Meaning::Executes),
    ("os.execlp", Meaning::Executes),
    ("os.execve", Meaning::Executes),
    ("os.spawnvp", Meaning::Executes),
    ("os.posix_spawn", Meaning::Executes),
    ("create_subprocess_exec", Meaning::Executes),
    ("shutil.rmtree", Meaning::DeletesTree),
    ("rmtree", Meaning::DeletesTree),
    ("os.removedirs", Meaning::DeletesTree),
    ("os.remove", Meaning::Deletes),
    ("os.unlink", Meaning::Deletes),
    ("os.rmdir", Meaning::Deletes),
    ("os.truncate", Meaning::Writes),
    ("open", Meaning::Opens),
    ("exec", Meaning::Evaluates),
    ("eval", Meaning::Evaluates),
];

const JAVASCRIPT: &[(&str, Meaning)] = &[
    ("execSync", Meaning::Runs),
    ("exec", Meaning::Runs),
    ("spawnSync", Meaning::Executes),
    ("spawn", Meaning::Executes),
    ("execFileSync", Meaning::Executes),
    ("execFile", Meaning::Executes),
    ("Deno.Command", Meaning::Executes),
    ("Deno.run", Meaning::Executes),
    ("Bun.spawn", Meaning::Runs),
    ("Bun.spawnSync", Meaning::Runs),
    ("rmSync", Meaning::DeletesTree),
    ("rm", Meaning::DeletesTree),
    ("rimraf", Meaning::DeletesTree),
    ("removeSync", Meaning::DeletesTree),
    ("rmdirSync", Meaning::DeletesTree),
    ("rmdir", Meaning::DeletesTree),
    ("unlinkSync", Meaning::Deletes),
    ("unlink", Meaning::Deletes),
    ("Deno.remove", Meaning::DeletesTree),
    ("Deno.removeSync", Meaning::DeletesTree),
    ("writeFileSync", Meaning::Writes),
    ("writeFile", Meaning::Writes),
    ("appendFileSync", Meaning::Writes),
    ("appendFile", Meaning::Writes),
    ("createWriteStream", Meaning::Writes),
    ("Deno.writeTextFile", Meaning::Writes),
    ("Deno.writeTextFileSync", Meaning::Writes),
    ("Bun.write", Meaning::Writes),
    ("eval", Meaning::Evaluates),
    ("Function", Meaning::Evaluates),
];

const RUBY: &[(&str, Meaning)] = &[
    ("system", Meaning::Runs),
    ("exec", Meaning::Runs),
    ("spawn", Meaning::Runs),
    ("IO.popen", Meaning::Runs),
    ("popen", Meaning::Runs),
    ("Open3.capture2", Meaning::Runs),
    ("Open3.capture3", Meaning::Runs),
    ("FileUtils.rm_rf", Meaning::DeletesTree),
    ("FileUtils.rm_r", Meaning::DeletesTree),
    ("FileUtils.remove_dir", Meaning::DeletesTree),
    ("FileUtils.remove_entry", Meaning::DeletesTree),
    ("FileUtils.rm_f", Meaning::Deletes),
    ("FileUtils.rm", Meaning::Deletes),
    ("File.delete", Meaning::Deletes),
    ("File.unlink", Meaning::Deletes),
    ("Dir.rmdir", Meaning::Deletes),
    ("File.write", Meaning::Writes),
    ("IO.write", Meaning::Writes),
    ("File.open", Meaning::Opens),
    ("File.new", Meaning::Opens),
    ("eval", Meaning::Evaluates),
];

const PERL: &[(&str, Meaning)] = &[
    ("system", Meaning::Runs),
    ("exec", Meaning::Runs),
    ("unlink", Meaning::Deletes),
    ("rmdir", Meaning::Deletes),
    ("rmtree", Meaning::DeletesTree),
    ("remove_tree", Meaning::DeletesTree),
    ("eval", Meaning::Evaluates),
];

const PHP: &[(&str, Meaning)] = &[
    ("system", Meaning::Runs),
    ("exec", Meaning::Runs),
    ("shell_exec", Meaning::Runs),
    ("passthru", Meaning::Runs),
    ("popen", Meaning::Runs),
    ("proc_open", Meaning::Runs),
    ("unlink", Meaning::Deletes),
    ("rmdir", Meaning::Deletes),
    ("file_put_contents", Meaning::Writes),
    ("fopen", Meaning::Opens),
    ("eval", Meaning::Evaluates),
];

const LUA: &[(&str, Meaning)] = &[
    ("os.execute", Meaning::Runs),
    ("io.popen", Meaning::Runs),
    ("os.remove", Meaning::Deletes),
    ("io.open", Meaning::Opens),
    ("load", Meaning::Evaluates),
    ("loadstring", Meaning::Evaluates),
];

const AWK: &[(&str, Meaning)] = &[("system", Meaning::Runs)];

/// The calls of a language.
pub(super) const fn table(language: Language) -> &'static [(&'static str, Meaning)] {
    match language {
        Language::Python => PYTHON,
        Language::JavaScript => JAVASCRIPT,
        Language::Ruby => RUBY,
        Language::Perl => PERL,
        Language::Php => PHP,
        Language::Lua => LUA,
        Language::Awk => AWK,
        Language::Osascript | Language::Vim | Language::Sqlite => &[],
    }
}
