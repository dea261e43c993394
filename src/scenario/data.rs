//! What the participants of a collective contribute, from every source, as bit patterns; and results as `.npy`.

use std::io::Write;
use std::path::Path;

use npyz::{NpyHeader, Order, TypeChar, WriterBuilder};

use super::config::{Collective, Data};
use super::names::{DType, Layout, layout};
use super::problem::Problem;
use super::random::Stream;
use super::{limits, number, shipped};

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
    pub fn push(&mut self, row: impl IntoIterator<Item = u64>) {
        self.words.extend(row);
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
            table.push(row);
        }
        table
    }
}

/// Gives the rows of a collective's data one after the other; as [`load`], but no more of them are in memory than need be.
///
/// # Errors
/// As [`load`].
pub fn each(collective: &Collective, index: usize, seed: u64, mut take: impl FnMut(&[u64])) -> Result<(), Problem> {
    if let Data::Random(distribution) = &collective.data {
        let layout = layout(collective.dtype);
        let mut elements = Vec::with_capacity(collective.elements as usize);
        for row in 0..collective.rows() {
            let mut stream = Stream::data(seed, index, row);
            elements.clear();
            elements.extend((0..collective.elements).map(|_| stream.element(*distribution, layout)));
            take(&elements);
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
        Data::None => Ok(Vec::new()),
        Data::Random(distribution) => Ok((0..rows)
            .map(|row| {
                let mut stream = Stream::data(seed, index, row);
                (0..elements).map(|_| stream.element(*distribution, layout)).collect()
            })
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
    let start = npy_header(bytes)?;
    let header = NpyHeader::from_reader(bytes).map_err(|error| format!("it is not a .npy file: {error}"))?;
    let npyz::DType::Plain(kind) = header.dtype() else {
        return Err("its elements are records".to_owned());
    };
    let wanted = npy_type(layout(dtype));
    let given = format!("{}{}", kind.type_char().to_str(), kind.size_field());
    if given != wanted {
        return Err(format!("its elements are {given}, not {wanted}"));
    }
    let shape = header.shape();
    let matches = match shape {
        [length] => rows == 1 && *length == elements as u64,
        [r, e] => *r == rows as u64 && *e == elements as u64,
        _ => false,
    };
    if !matches {
        let shape: Vec<String> = shape.iter().map(ToString::to_string).collect();
        return Err(format!("its shape is ({})", shape.join(", ")));
    }
    let width = kind.size_field() as usize;
    let data = &bytes[start..];
    if data.len() != rows * elements * width {
        return Err(format!("it has {} bytes of data, {} are needed", data.len(), rows * elements * width));
    }
    let big = kind.endianness() == npyz::Endianness::Big;
    let word = |bytes: &[u8]| {
        let fold = |word: u64, byte: &u8| word << 8 | u64::from(*byte);
        if big { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) }
    };
    let fortran = header.order() == Order::Fortran;
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

/// Looks at a header before the reader trusts the numbers in it. Returns where the data starts.
fn npy_header(bytes: &[u8]) -> Result<usize, String> {
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
    let text = bytes.get(from..from + length).ok_or_else(broken)?;
    // Every number of the header together bounds every product of them.
    let product = text.split(|byte| !byte.is_ascii_digit()).filter(|digits| !digits.is_empty()).try_fold(
        1u64,
        |product, digits| {
            let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
            product.checked_mul(number.max(1))
        },
    );
    let nested = text.iter().filter(|byte| b"([{".contains(byte)).count();
    if product.is_none() || nested > 16 {
        return Err("the shape in its header is beyond all measure".to_owned());
    }
    Ok(from + length)
}

/// NumPy's name of a type; what NumPy has no type for is kept as unsigned bit patterns.
fn npy_type(layout: Layout) -> String {
    let letter = match layout {
        Layout::Integer { signed: true, .. } => TypeChar::Int,
        Layout::Float { exponent: 5, fraction: 10, .. }
        | Layout::Float { exponent: 8, fraction: 23, .. }
        | Layout::Float { exponent: 11, fraction: 52, .. } => TypeChar::Float,
        _ => TypeChar::Uint,
    };
    format!("{}{}", letter.to_str(), layout.bits() / 8)
}

/// Writes rows as a two-dimensional `.npy` array.
///
/// # Errors
/// Those of writing the file.
pub fn save_npy<R: AsRef<[u64]>>(path: &Path, dtype: DType, rows: &[R]) -> std::io::Result<()> {
    let layout = layout(dtype);
    let width = layout.bits() as usize / 8;
    let mark = if width == 1 { "|" } else { "<" };
    let kind = format!("{mark}{}", npy_type(layout)).parse().map_err(std::io::Error::other)?;
    let elements = rows.first().map_or(0, |row| row.as_ref().len());
    crate::files::write_with(path, |file| {
        npyz::WriteOptions::new_header_only()
            .dtype(npyz::DType::Plain(kind))
            .shape(&[rows.len() as u64, elements as u64])
            .writer(&mut *file)
            .write_header_only()?;
        rows.iter().flat_map(AsRef::as_ref).try_for_each(|word| file.write_all(&word.to_le_bytes()[..width]))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::scenario::names::Named;

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
