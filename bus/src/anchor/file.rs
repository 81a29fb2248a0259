//! A file with one checkpoint per line, of one bus or of many. Lines are only added.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::place::{Agrees, AnchorError, Anchored, may_follow};
use crate::files::open_regular;
use crate::log::{CheckpointError, SignedCheckpoint};

/// A file with checkpoints is not larger than this: some 100,000 of them.
pub(super) const LARGEST: u64 = 64 << 20;

pub(super) fn add(
    path: &Path,
    signed: &SignedCheckpoint,
    agrees: &Agrees<'_>,
) -> Result<Anchored, AnchorError> {
    let failed = |error| AnchorError::Io { file: path.to_owned(), error };
    let place = path.display().to_string();
    let mut file = open(path).map_err(failed)?;
    // Another `hookbus anchor` may write at the same time.
    file.lock().map_err(failed)?;
    let content = read_text(&mut file).map_err(failed)?;
    let lines: Vec<_> = parse(&content);
    // A line without its end was not written to the end: the disk was full, or the process was killed.
    let is_cut = !content.is_empty() && !content.ends_with('\n');
    let whole = lines.len() - usize::from(is_cut && lines.last().is_some_and(Result::is_err));
    let known = lines.get(..whole).unwrap_or_default();
    if let Some(Err(why)) = known.last() {
        return Err(AnchorError::Foreign { place, why: why.clone() });
    }
    let of_bus = |it: &&SignedCheckpoint| it.checkpoint.bus == signed.checkpoint.bus;
    if let Some(last) = known.iter().filter_map(|line| line.as_ref().ok()).rfind(of_bus)
        && may_follow(last, signed, &place, agrees)? == Anchored::Known
    {
        return Ok(Anchored::Known);
    }
    let mut text = format!("{}\n", signed.to_json());
    if whole < lines.len() {
        let end = content.rfind('\n').map_or(0, |end| end + 1);
        file.set_len(end as u64).map_err(failed)?;
    } else if is_cut {
        text.insert(0, '\n');
    }
    let written = file.seek(SeekFrom::End(0)).and_then(|_| file.write_all(text.as_bytes()));
    written.and_then(|()| file.sync_all()).map_err(failed)?;
    Ok(Anchored::Added)
}

pub(super) fn read(
    path: &Path,
) -> Result<Vec<Result<SignedCheckpoint, CheckpointError>>, AnchorError> {
    let failed = |error| AnchorError::Io { file: path.to_owned(), error };
    let mut file = open_regular(path).map_err(failed)?;
    read_text(&mut file).map(|content| parse(&content)).map_err(failed)
}

fn open(path: &Path) -> io::Result<File> {
    // A FIFO or a device would block.
    if path.exists() {
        drop(open_regular(path)?);
    }
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

fn read_text(file: &mut File) -> io::Result<String> {
    let mut content = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut content)?;
    if content.len() as u64 > LARGEST {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "it is too large to be a file of checkpoints; name another",
        ));
    }
    Ok(String::from_utf8_lossy(&content).into_owned())
}

fn parse(content: &str) -> Vec<Result<SignedCheckpoint, CheckpointError>> {
    content
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(SignedCheckpoint::from_line)
        .collect()
}
