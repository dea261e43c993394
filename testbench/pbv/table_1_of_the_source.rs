//! Table 1 and paragraphs 151 and 153, from simulated runs (B-FIG-1 to B-FIG-5, B-HI-3, B-HI-4).

use watershed::study::named::{Basis, Report, find};

fn rows<'a>(report: &'a Report, id: &str) -> Vec<(&'a str, f64, Option<f64>)> {
    report.rows.iter().filter(|row| row.id == id).map(|row| (row.what.as_str(), row.ours, row.simulated)).collect()
}

#[test]
fn counts_are_the_texts_and_times_are_within_two_per_cent() {
    let mut report = Report::default();
    (find("pbv-table1").unwrap().run)(&|_| {}, &mut report).unwrap();
    assert!(report.holds(), "{}", report.text());
    assert!(report.rows.iter().all(|row| row.basis == Basis::Predicted && row.tolerance <= 0.02));
    let of = |id: &str| rows(&report, id);
    assert_eq!(of("B-FIG-1").iter().map(|row| row.1).collect::<Vec<_>>(), [1023.0, 31.0, 31.0, 32.0, 1.0]);
    assert_eq!(of("B-FIG-2").iter().map(|row| row.1).collect::<Vec<_>>(), [32.0, 1.0]);
    assert_eq!(of("B-HI-4").iter().map(|row| row.1).collect::<Vec<_>>(), [3.0, 3.0]);
    assert_eq!(of("B-HI-3").iter().map(|row| row.1).collect::<Vec<_>>(), [528.0, 264.0]);
    // With latencies nothing is faster than sending alone, and the tree of engines keeps its lead.
    for id in ["B-FIG-3", "B-FIG-4"] {
        let rows = of(id);
        assert!(rows.iter().all(|&(_, ours, simulated)| simulated.unwrap() > ours), "{rows:?}");
        assert!(rows[0].2.unwrap() > 10.0 * rows[1].2.unwrap(), "{rows:?}");
    }
    // Two masters: the results of sixteen contexts are out sooner, at the engines' own ports as well.
    let rows = of("B-HI-3");
    assert!(rows[1].2.unwrap() < 0.8 * rows[0].2.unwrap(), "{rows:?}");
}
