//! What this side looks for in the lines of a VCD while the library reads it: the library leaves out silently what is
//! wrong in two ways.
//!
//! | wrong | the library |
//! |---|---|
//! | time goes back | prints a warning and leaves values out |
//! | a value of an identifier that no `$var` declares | leaves it out, unless identifiers are sparse |
//!
//! A line is looked at when its end has passed. Values are looked for where writers put them, one a line.

use std::collections::HashSet;

/// The lines of a VCD as they pass, piece by piece.
#[derive(Debug, Default)]
pub(crate) struct VcdLines {
    /// The line that passes, so far.
    line: Vec<u8>,
    /// Behind the end of one.
    line_ended: bool,
    /// The last time stamp.
    last: Option<u64>,
    /// Identifiers of variables.
    declared: HashSet<Vec<u8>>,
    /// Words of the `$var` that passes.
    words_of_var: Option<usize>,
    in_comment: bool,
}

impl VcdLines {
    /// Back at the start of the file.
    pub(crate) fn rewind(&mut self) {
        *self = VcdLines::default();
    }

    /// The last time stamp, in units of the file.
    pub(crate) fn last_time(&self) -> Option<u64> {
        self.last
    }

    /// Takes a byte within a line, as most are; whether it is one.
    pub(crate) fn keep(&mut self, byte: u8) -> bool {
        let within = byte != b'\n' && !self.line_ended;
        if within {
            self.line.push(byte);
        }
        within
    }

    /// Takes the next bytes; `counted` is called with the end of each line, once the byte behind it comes: what the library finds wrong
    /// at the end of a line is wrong with that line.
    ///
    /// # Errors
    /// What is wrong with a line of the body.
    pub(crate) fn pass(&mut self, bytes: &[u8], in_body: bool, mut counted: impl FnMut()) -> Result<(), String> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if std::mem::take(&mut self.line_ended) {
                counted();
            }
            let Some(at) = rest.iter().position(|&byte| byte == b'\n') else {
                self.line.extend_from_slice(rest);
                break;
            };
            self.line.extend_from_slice(&rest[..at]);
            rest = &rest[at + 1..];
            self.line_ended = true;
            let line = std::mem::take(&mut self.line);
            let looked = if in_body {
                self.body(&line)
            } else {
                self.header(&line);
                Ok(())
            };
            self.line = line;
            self.line.clear();
            looked?;
        }
        Ok(())
    }

    /// Declarations: `$var type width identifier name $end`, over any number of lines.
    fn header(&mut self, line: &[u8]) {
        for word in line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
            match self.words_of_var {
                None if word == b"$var" => self.words_of_var = Some(0),
                None => {}
                Some(_) if word == b"$end" => self.words_of_var = None,
                Some(before) => {
                    if before == 2 {
                        self.declared.insert(word.to_vec());
                    }
                    self.words_of_var = Some(before + 1);
                }
            }
        }
    }

    /// Time stamps and values.
    fn body(&mut self, line: &[u8]) -> Result<(), String> {
        let line = line.trim_ascii_end();
        if self.in_comment || line.starts_with(b"$comment") {
            self.in_comment = !line.windows(4).any(|word| word == b"$end");
            return Ok(());
        }
        let Some((&first, rest)) = line.split_first() else { return Ok(()) };
        let identifier = match first {
            b'#' => return self.time(rest),
            b'0' | b'1' | b'x' | b'X' | b'z' | b'Z' => rest,
            b'b' | b'B' | b'r' | b'R' | b's' | b'S' => match rest.iter().rposition(|&byte| byte == b' ') {
                Some(at) => &rest[at + 1..],
                None => return Ok(()),
            },
            _ => return Ok(()),
        };
        let is_one = !identifier.is_empty() && !identifier.iter().any(u8::is_ascii_whitespace);
        if is_one && !self.declared.contains(identifier) {
            return Err(format!("a value of `{}`, which no variable is declared to have", text(identifier)));
        }
        Ok(())
    }

    fn time(&mut self, digits: &[u8]) -> Result<(), String> {
        let now = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
        match (self.last, now) {
            (Some(last), Some(now)) if last > now => Err(format!("time goes back from {last} to {now}")),
            (_, Some(now)) => {
                self.last = Some(now);
                Ok(())
            }
            (_, None) => Ok(()),
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of lines that were counted, and what is wrong.
    fn passed(pieces: &[&str], body: &[&str]) -> (u64, Result<(), String>) {
        let (mut lines, mut count) = (VcdLines::default(), 1);
        let all = pieces.iter().map(|text| (text, false)).chain(body.iter().map(|text| (text, true)));
        for (text, in_body) in all {
            if let Err(wrong) = lines.pass(text.as_bytes(), in_body, || count += 1) {
                return (count, Err(wrong));
            }
        }
        (count, Ok(()))
    }

    const HEAD: [&str; 3] = ["$var wire 4 ! v $end\n$va", "r\nreal 64\nr!", " r $end\n$enddefinitions $end\n"];

    #[test]
    fn declarations_pass_in_any_pieces() {
        let body = ["#1\nb01 !\nr1.5 ", "r!\n1!\r\n$comment\n0?\n$end \n$comment 0? $end 1!\n#", "2\nsa b !\n"];
        assert_eq!(passed(&HEAD, &body), (15, Ok(())));
    }

    #[test]
    fn values_of_no_variable_are_named_with_their_line() {
        for (value, identifier) in [("b01 ?", "?"), ("0?", "?"), ("r2 !r", "!r"), ("stext r", "r"), ("Z!!", "!!")] {
            let (line, wrong) = passed(&HEAD, &["#1\n1!\n", value, "\n1!\n"]);
            let expected = format!("a value of `{identifier}`, which no variable is declared to have");
            assert_eq!((line, wrong), (8, Err(expected)), "{value}");
        }
    }

    #[test]
    fn time_may_stand_and_not_go_back() {
        assert_eq!(passed(&HEAD, &["#5\n#5\n#7\r\n"]).1, Ok(()));
        assert_eq!(passed(&HEAD, &["#5\n#7\n1!\n#6\n"]), (9, Err("time goes back from 7 to 6".to_owned())));
    }
}
