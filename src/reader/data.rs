//! The operands of the participants of a collective, from every source, as bit patterns; and results as `.npy`.

use std::io::Write;
use std::path::Path;

use super::config::{Collective, Data};
use super::names::{DType, Layout, layout};
use super::problem::Problem;
use super::random::Stream;
use super::{limits, number, shipped};
use watershed_arith::element_bytes;

/// One row a contributing participant (see [`Collective::rows`]); one element a word, its bits at the low end.
pub type Rows = Vec<Vec<u64>>;

/// Rows of elements in one piece of memory, for millions of short ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    words: Vec<u64>,
    /// Where each row ends.
    ends: Vec<usize>,
}

impl Table {
    /// Appends a row.
    pub fn push(&mut self, row: &[u64]) {
        self.words.extend_from_slice(row);
        self.ends.push(self.words.len());
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// A row.
    ///
    /// # Panics
    /// If there is none with this number.
    pub fn row(&self, at: usize) -> &[u64] {
        let from = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.words[from..self.ends[at]]
    }

    /// The rows.
    pub fn iter(&self) -> impl Iterator<Item = &[u64]> {
        let from = std::iter::once(0).chain(self.ends.iter().copied());
        from.zip(&self.ends).map(|(from, &to)| &self.words[from..to])
    }
}

impl From<Rows> for Table {
    fn from(rows: Rows) -> Table {
        let mut table = Table::default();
        for row in rows {
            table.push(&row);
        }
        table
    }
}

/// Gives the rows of a collective's data one after the other; as [`load`], but no more of them are in memory than need be.
///
/// # Errors
/// As [`load`].
pub fn for_each_row(
    collective: &Collective,
    index: usize,
    seed: u64,
    mut take: impl FnMut(&[u64]),
) -> Result<(), Problem> {
    if let Data::Random(distribution) = &collective.data {
        let layout = layout(collective.dtype);
        for row in 0..collective.rows() {
            take(&Stream::data(seed, index, row).elements(collective.elements, *distribution, layout));
        }
        return Ok(());
    }
    for row in load(collective, index, seed)? {
        take(&row);
    }
    Ok(())
}

/// Loads or draws the data of the collective with this index.
///
/// # Errors
/// What is wrong with a data file, at the place in the scenario that names it.
pub fn load(collective: &Collective, index: usize, seed: u64) -> Result<Rows, Problem> {
    let layout = layout(collective.dtype);
    let rows = collective.rows();
    let elements = collective.elements as usize;
    match &collective.data {
        Data::None | Data::Called => Ok(Vec::new()),
        Data::Random(distribution) => Ok((0..rows)
            .map(|row| Stream::data(seed, index, row).elements(collective.elements, *distribution, layout))
            .collect()),
        // Checked when the scenario was resolved.
        Data::Values(values) => Ok(values
            .iter()
            .map(|row| row.iter().map(|number| number::parse(&number.0, layout).unwrap_or(0)).collect())
            .collect()),
        Data::File { name, path } => {
            let problem = |what: String| {
                Problem::at(format!("collective[{index}].data.file"), format!("\"{name}\": {what}"))
                    .expected(format!("{rows} rows of {elements} elements of type {}", collective.dtype.name()))
            };
            let rows = read(path, collective.dtype, rows, elements).map_err(problem)?;
            Ok(rows)
        }
    }
}

/// Reads a data file by its extension.
fn read(path: &Path, dtype: DType, rows: usize, elements: usize) -> Result<Rows, String> {
    let size = shipped::len(path).map_err(|error| error.to_string())?;
    if size > limits::DATA_BYTES {
        return Err(format!("{size} bytes are more than the {} a data file may have", limits::DATA_BYTES));
    }
    let bytes = shipped::read(path).map_err(|error| error.to_string())?;
    let data = match path.extension().and_then(|extension| extension.to_str()) {
        Some("npy") => read_npy(&bytes, dtype, rows, elements)?,
        Some("hex") => read_text(&bytes, |field| {
            let digits = field.strip_prefix("0x").unwrap_or(field);
            number::parse_hex(digits, layout(dtype))
        })?,
        _ => read_text(&bytes, |field| number::parse(field, layout(dtype)))?,
    };
    if data.len() != rows {
        return Err(format!("it has {} rows", data.len()));
    }
    if let Some((row, short)) = data.iter().enumerate().find(|(_, row)| row.len() != elements) {
        return Err(format!("row {row} has {} elements", short.len()));
    }
    Ok(data)
}

/// Rows of text: one a line, fields between commas or blanks, `#` starts a comment.
fn read_text(bytes: &[u8], parse: impl Fn(&str) -> Result<u64, String>) -> Result<Rows, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].split(|byte| *byte == b'\n').count();
        format!("line {line} is not UTF-8 text")
    })?;
    let mut rows = Vec::new();
    for (line, content) in text.lines().enumerate() {
        let content = content.split('#').next().unwrap_or("").trim();
        if content.is_empty() {
            continue;
        }
        let fields: Vec<&str> = if content.contains(',') {
            content.split(',').map(str::trim).collect()
        } else {
            content.split_whitespace().collect()
        };
        let row = fields
            .iter()
            .enumerate()
            .map(|(field, text)| {
                parse(text).map_err(|reason| {
                    let shown: String = text.chars().take(40).collect();
                    format!("line {}, field {}: \"{shown}\": {reason}", line + 1, field + 1)
                })
            })
            .collect::<Result<Vec<u64>, String>>()?;
        rows.push(row);
    }
    Ok(rows)
}

/// Longest header of a `.npy` file that is read: a plain array needs about a hundred bytes.
const NPY_HEADER: usize = 4096;

fn read_npy(bytes: &[u8], dtype: DType, rows: usize, elements: usize) -> Result<Rows, String> {
    let (NpyHeader { kind, fortran, shape }, start) = npy_header(bytes)?;
    let wanted = npy_type(layout(dtype));
    let given = kind.trim_start_matches(['<', '>', '=', '|']);
    if given != wanted {
        return Err(format!("its elements are {given}, not {wanted}"));
    }
    let matches = match *shape {
        [length] => rows == 1 && length == elements,
        [r, e] => (r, e) == (rows, elements),
        _ => false,
    };
    if !matches {
        let shape: Vec<String> = shape.iter().map(ToString::to_string).collect();
        return Err(format!("its shape is ({})", shape.join(", ")));
    }
    let width = layout(dtype).bits() as usize / 8;
    let data = &bytes[start..];
    if data.len() != rows * elements * width {
        return Err(format!("it has {} bytes of data, {} are needed", data.len(), rows * elements * width));
    }
    let big = kind.starts_with('>');
    let word = |bytes: &[u8]| {
        let fold = |word: u64, byte: &u8| word << 8 | u64::from(*byte);
        if big { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) }
    };
    Ok((0..rows)
        .map(|row| {
            (0..elements)
                .map(|element| {
                    let at = if fortran { element * rows + row } else { row * elements + element };
                    word(&data[at * width..(at + 1) * width])
                })
                .collect()
        })
        .collect())
}

/// What a `.npy` file says about its data.
struct NpyHeader {
    /// Byte order, letter and bytes of an element: `<f8`.
    kind: String,
    /// Columns one after the other, not rows.
    fortran: bool,
    shape: Vec<usize>,
}

/// The header, and where the data starts.
fn npy_header(bytes: &[u8]) -> Result<(NpyHeader, usize), String> {
    let broken = || "it is not a .npy file".to_owned();
    if bytes.len() < 12 || !bytes.starts_with(b"\x93NUMPY") {
        return Err(broken());
    }
    let (from, length) = match bytes[6] {
        1 => (10, usize::from(u16::from_le_bytes([bytes[8], bytes[9]]))),
        2 | 3 => (12, u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) as usize),
        version => return Err(format!("version {version} of .npy is not known")),
    };
    if length > NPY_HEADER {
        return Err(format!("its header of {length} bytes is too long"));
    }
    let text = bytes.get(from..from + length).and_then(|text| std::str::from_utf8(text).ok()).ok_or_else(broken)?;
    // A dictionary as Python writes it: three keys in any order.
    let (mut kind, mut fortran, mut shape) = (None, None, None);
    let mut rest = text.trim().strip_prefix('{').and_then(|text| text.strip_suffix('}')).ok_or_else(broken)?.trim();
    while !rest.is_empty() {
        let (key, value) = rest.split_once(':').ok_or_else(broken)?;
        let value = value.trim_start();
        let end = match value.as_bytes().first() {
            Some(b'(') => value.find(')').map(|end| end + 1),
            Some(b'[') => return Err("its elements are records".to_owned()),
            _ => value.find(',').or(Some(value.len())),
        };
        let (value, after) = value.split_at(end.ok_or_else(broken)?);
        match key.trim().trim_matches(['\'', '"']) {
            "descr" => kind = Some(value.trim_end().trim_matches(['\'', '"']).to_owned()),
            "fortran_order" => fortran = value.trim_end().to_ascii_lowercase().parse().ok(),
            "shape" => {
                let list = value.strip_prefix('(').and_then(|list| list.strip_suffix(')')).ok_or_else(broken)?;
                let lengths = list.split(',').map(str::trim).filter(|length| !length.is_empty());
                shape = Some(lengths.map(str::parse).collect::<Result<Vec<usize>, _>>().map_err(|_| broken())?);
            }
            _ => return Err(broken()),
        }
        rest = after.trim_start().trim_start_matches(',').trim_start();
    }
    let (Some(kind), Some(fortran), Some(shape)) = (kind, fortran, shape) else { return Err(broken()) };
    Ok((NpyHeader { kind, fortran, shape }, from + length))
}

/// NumPy's name of a type; what NumPy has no type for is kept as unsigned bit patterns.
fn npy_type(layout: Layout) -> String {
    let letter = match layout {
        Layout::Integer { signed: true, .. } => 'i',
        Layout::Float { exponent: 5, fraction: 10, .. }
        | Layout::Float { exponent: 8, fraction: 23, .. }
        | Layout::Float { exponent: 11, fraction: 52, .. } => 'f',
        _ => 'u',
    };
    format!("{letter}{}", layout.bits() / 8)
}

/// Bytes of an element in a file.
pub fn width(dtype: DType) -> usize {
    layout(dtype).bits() as usize / 8
}

/// Elements that are turned into bytes at a time.
const PIECE: usize = 4096;

/// Gives rows as bytes, one after the other: each element little-endian and as wide as its type.
///
/// # Errors
/// That of who takes them.
pub fn pieces<'a, E>(
    dtype: DType,
    rows: impl Iterator<Item = &'a [u64]>,
    mut take: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    rows.flat_map(|row| row.chunks(PIECE)).try_for_each(|piece| take(&element_bytes(dtype, piece)))
}

/// Writes rows as a two-dimensional `.npy` array.
///
/// # Errors
/// Those of writing the file.
pub fn save_npy<R: AsRef<[u64]>>(path: &Path, dtype: DType, rows: &[R]) -> std::io::Result<()> {
    let layout = layout(dtype);
    let width = width(dtype);
    let mark = if width == 1 { "|" } else { "<" };
    let elements = rows.first().map_or(0, |row| row.as_ref().len());
    let kind = npy_type(layout);
    let header =
        format!("{{'descr': '{mark}{kind}', 'fortran_order': False, 'shape': ({}, {elements}), }}", rows.len());
    // The data begins at a multiple of 64 bytes, behind the 10 in front, the header and the end of its line.
    let length = (10 + header.len() + 1).next_multiple_of(64) - 10;
    watershed_files::write_with(path, |file| {
        file.write_all(b"\x93NUMPY\x01\x00")?;
        file.write_all(&(length as u16).to_le_bytes())?;
        writeln!(file, "{header:<0$}", length - 1)?;
        pieces(dtype, rows.iter().map(AsRef::as_ref), |piece| file.write_all(piece))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::names::NamedValues;

    fn file(name: &str, content: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        (folder, path)
    }

    #[test]
    fn npy_comes_back_in_every_type() {
        for &(name, dtype) in DType::NAMES {
            let mask = layout(dtype).mask();
            let rows: Rows = (0..3u64)
                .map(|row| (0..5u64).map(|element| ((row << 20) | (element * 0x0101)) & mask).collect())
                .collect();
            let (_folder, path) = file("x.npy", b"");
            save_npy(&path, dtype, &rows).unwrap();
            assert_eq!(read(&path, dtype, 3, 5), Ok(rows), "{name}");
        }
    }

    fn npy(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn npy_in_either_order_and_endianness() {
        let data: Vec<u8> = [1u32, 2, 3, 4].iter().flat_map(|word| word.to_be_bytes()).collect();
        let bytes = npy("{'descr': '>u4', 'fortran_order': True, 'shape': (2, 2), }\n", &data);
        assert_eq!(read_npy(&bytes, DType::U32, 2, 2), Ok(vec![vec![1, 3], vec![2, 4]]));
        let bytes = npy("{\"shape\":(4,),\"fortran_order\":False,\"descr\":\">u4\"}", &data);
        assert_eq!(read_npy(&bytes, DType::U32, 1, 4), Ok(vec![vec![1, 2, 3, 4]]));
    }

    #[test]
    fn npy_is_what_numpy_writes() {
        let (_folder, path) = file("x.npy", b"");
        let numpy = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/operands-4x16-f64.npy")).unwrap();
        let rows = read_npy(&numpy, DType::F64, 4, 16).unwrap();
        save_npy(&path, DType::F64, &rows).unwrap();
        assert_eq!(fs::read(path).unwrap(), numpy);
    }

    #[test]
    fn hostile_npy_is_refused_without_panic() {
        for (header, data) in [
            ("", &b""[..]),
            ("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4611686018427387904), }", b""),
            ("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 4611686018427387904, 9999999999), }", b""),
            ("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }", b"short"),
            ("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 2), }", b""),
            ("{'descr': '|O', 'fortran_order': False, 'shape': (2, 2), }", b""),
            ("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (2, 2), }", b""),
            ("((((((((((((((((((((((((((((((", b""),
            ("{'shape': 3}", b""),
            ("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), 'more': 1, }", &[0; 32]),
            ("{'descr': '<f8', 'fortran_order': No, 'shape': (2, 2), }", &[0; 32]),
            ("{'descr': '<f8', 'shape': (2, 2), }", &[0; 32]),
            ("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2)", &[0; 32]),
        ] {
            assert!(read_npy(&npy(header, data), DType::F64, 2, 2).is_err(), "{header}");
        }
        assert!(read_npy(b"", DType::F64, 2, 2).is_err());
        assert!(read_npy(b"\x93NUMPY\x02\x00\xff\xff\xff\xff", DType::F64, 2, 2).is_err());
    }

    #[test]
    fn text_files_have_rows_comments_and_places() {
        let (_folder, path) = file("x.csv", b"# two rows\n1, 2.5,-0.0\n\n3,4,inf # the last\n");
        let bits = |numbers: [f64; 3]| numbers.map(f64::to_bits).to_vec();
        assert_eq!(read(&path, DType::F64, 2, 3), Ok(vec![bits([1.0, 2.5, -0.0]), bits([3.0, 4.0, f64::INFINITY])]));
        let (_folder, path) = file("x.hex", b"3f800000 0xBF800000\n");
        assert_eq!(read(&path, DType::F32, 1, 2), Ok(vec![vec![0x3f80_0000, 0xbf80_0000]]));
        let (_folder, path) = file("x.csv", b"1,2\n3,x\n");
        assert_eq!(read(&path, DType::F64, 2, 2), Err("line 2, field 2: \"x\": it is not a number".into()));
        assert_eq!(read_text(b"1\n\xff", |_| Ok(0)), Err("line 2 is not UTF-8 text".into()));
    }
}
