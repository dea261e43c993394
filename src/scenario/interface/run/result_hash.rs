//! Results of a job as a hash, where the document does not hold their words: see [`result_detail`](watershed_reader::result_detail).

use std::convert::Infallible;
use std::fmt::Write;

use sha2::{Digest, Sha256};

use crate::job_result::HashedResults;
use crate::result::{ResultData, hex};
use watershed_reader::data::{pieces, width};
use watershed_reader::result_detail::ResultDetail;

/// The results of a job, unless its document holds them, or there are none.
pub fn result_hash(kept: ResultDetail, data: &[ResultData]) -> Option<HashedResults> {
    let rows = || data.iter().flat_map(|of| of.rows.iter());
    let elements = rows().map(<[u64]>::len).max().filter(|&elements| elements > 0)?;
    if kept == ResultDetail::All || kept == ResultDetail::Auto && kept.of(elements) == elements {
        return None;
    }
    let dtype = data.first()?.dtype;
    let mut hash = Sha256::new();
    for of in data {
        let Ok(()) = pieces::<Infallible>(of.dtype, of.rows.iter(), |piece| {
            hash.update(piece);
            Ok(())
        });
    }
    let mut sha256 = String::new();
    for byte in hash.finalize() {
        let _ = write!(sha256, "{byte:02x}");
    }
    Some(HashedResults {
        rows: rows().count() as u64,
        elements: elements as u64,
        element_bytes: width(dtype) as u64,
        first: rows().next().map_or_else(Vec::new, |row| hex(dtype, kept.head(row))),
        sha256,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use watershed_reader::data::Table;
    use watershed_reader::names::DType;

    #[test]
    fn the_hash_is_of_little_endian_elements() {
        // printf '\x01\x02\x03\x04\x05\x06\x07\x08' | sha256sum
        let expected = "66840dda154e8a113c31dd0ad32f7f3a366a80e8136979d8f5a101d3d29d6f72";
        let of = |dtype, rows: Vec<Vec<u64>>| ResultData {
            place: String::new(),
            name: String::new(),
            dtype,
            rows: Table::from(rows),
        };
        let narrow = of(DType::F16, vec![vec![0x0201, 0x0403], vec![0x0605, 0x0807]]);
        let told = result_hash(ResultDetail::First(1), &[narrow]).unwrap();
        assert_eq!((told.rows, told.elements, told.element_bytes, told.first), (2, 2, 2, vec!["0201".to_owned()]));
        assert_eq!(told.sha256, expected);
        let wide = of(DType::U64, vec![vec![0x0807_0605_0403_0201]]);
        assert_eq!(result_hash(ResultDetail::Hash, &[wide]).unwrap().sha256, expected);
    }
}
