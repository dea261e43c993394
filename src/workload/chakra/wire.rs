//! Protobuf's wire format, as far as Chakra uses it: keys, varints, fixed words, byte strings.
//!
//! The reader is written here, and not taken from a crate. `prost` with its derive takes 11 packages and 7.4 s of
//! processor time to build (measured; 54 packages and 69 s with `protox`). Its `encoding` module without the derive is
//! internal. Neither reports the byte at which a file is truncated.

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A varint: integers and booleans.
    Varint(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// Bytes: strings, messages, packed lists.
    Bytes(&'a [u8]),
    /// Four bytes.
    Fixed32(u32),
}

/// Fields of a message, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Why bytes are no message, and at which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireError {
    /// The byte.
    pub at: usize,
    /// Why.
    pub why: &'static str,
}

/// Reads a varint; what follows it.
pub fn varint(bytes: &[u8]) -> Result<(u64, usize), &'static str> {
    let mut value = 0u64;
    for (at, &byte) in bytes.iter().take(10).enumerate() {
        if at == 9 && byte > 1 {
            return Err("a number has more than 64 bits");
        }
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok((value, at + 1));
        }
    }
    Err(if bytes.len() < 10 { "it ends within a number" } else { "a number has more than ten bytes" })
}

impl<'a> Fields<'a> {
    /// The fields of a message.
    pub fn new(bytes: &'a [u8]) -> Fields<'a> {
        Fields { bytes, at: 0 }
    }

    fn number(&mut self) -> Result<u64, WireError> {
        let (value, length) = varint(&self.bytes[self.at..]).map_err(|why| WireError { at: self.at, why })?;
        self.at += length;
        Ok(value)
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], WireError> {
        let left = &self.bytes[self.at..];
        let bytes = usize::try_from(length).ok().and_then(|length| left.get(..length));
        let bytes = bytes.ok_or(WireError { at: self.at, why: "it ends within a field" })?;
        self.at += bytes.len();
        Ok(bytes)
    }

    /// The next field: its number and what it holds.
    ///
    /// # Errors
    /// The bytes are no message.
    pub fn next(&mut self) -> Result<Option<(u64, Value<'a>)>, WireError> {
        if self.at == self.bytes.len() {
            return Ok(None);
        }
        let start = self.at;
        let key = self.number()?;
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        let value = match key & 7 {
            0 => Value::Varint(self.number()?),
            1 => Value::Fixed64(word(self.take(8)?)),
            2 => {
                let length = self.number()?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Fixed32(word(self.take(4)?) as u32),
            _ => return Err(WireError { at: start, why: "there is no field of such a kind" }),
        };
        if key >> 3 == 0 {
            return Err(WireError { at: start, why: "there is no field 0" });
        }
        Ok(Some((key >> 3, value)))
    }
}

/// A message that is being written.
#[derive(Clone, Debug, Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A varint; protobuf leaves zeros out.
    pub fn varint(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.number(field << 3);
            self.number(value);
        }
    }

    /// Bytes: a string or a message.
    pub fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.number(field << 3 | 2);
        self.number(bytes.len() as u64);
        self.0.extend(bytes);
    }

    /// A varint of a oneof, which is written even if it is zero.
    pub fn chosen(&mut self, field: u64, value: u64) {
        self.number(field << 3);
        self.number(value);
    }

    /// This message with its length before it.
    pub fn delimited(self) -> Vec<u8> {
        let mut out = Writer::default();
        out.number(self.0.len() as u64);
        out.0.extend(self.0);
        out.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut writer = Writer::default();
        for (field, value) in [(1, 1), (2, 127), (3, 128), (1000, u64::MAX)] {
            writer.varint(field, value);
        }
        writer.bytes(5, b"name");
        writer.varint(6, 0);
        writer.chosen(7, 0);
        let mut fields = Fields::new(&writer.0);
        let mut read = Vec::new();
        while let Some(field) = fields.next().unwrap() {
            read.push(field);
        }
        let numbers =
            [(1, 1), (2, 127), (3, 128), (1000, u64::MAX)].map(|(field, value)| (field, Value::Varint(value)));
        assert_eq!(read[..4], numbers);
        assert_eq!(read[4..], [(5, Value::Bytes(b"name")), (7, Value::Varint(0))]);
    }

    #[test]
    fn every_cut_is_noticed() {
        let mut writer = Writer::default();
        writer.varint(3, 300);
        writer.bytes(9, &[0; 200]);
        let whole = writer.0;
        for length in 1..whole.len() {
            let mut fields = Fields::new(&whole[..length]);
            let outcome = loop {
                match fields.next() {
                    Ok(Some(_)) => {}
                    other => break other,
                }
            };
            assert_eq!(outcome.is_err(), length != 3, "{length} bytes");
        }
        assert_eq!(Fields::new(&[0x0b]).next().unwrap_err().why, "there is no field of such a kind");
        assert_eq!(Fields::new(&[0x00, 1]).next().unwrap_err().why, "there is no field 0");
        assert!(Fields::new(&[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).next().is_err());
        assert_eq!(Fields::new(&[0x0d, 1, 2, 3, 4]).next(), Ok(Some((1, Value::Fixed32(0x0403_0201)))));
        assert_eq!(Fields::new(&[0x09, 1, 0, 0, 0, 0, 0, 0, 2]).next(), Ok(Some((1, Value::Fixed64(1 | 2 << 56)))));
    }
}
