//! Medians and how sure they are. Never the best of many.

use crate::load::pace::Random;

/// A median and the interval that holds it with 95 % confidence.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Median {
    /// The median.
    pub value: f64,
    /// The interval's ends.
    pub low: f64,
    /// The upper one.
    pub high: f64,
    /// How many figures there were.
    pub count: usize,
}

/// The median, with its interval by bootstrap: the medians of many samples drawn, with repetition, from the figures.
///
/// With fewer than five figures the interval is their whole range, for want of anything better.
pub fn median(figures: &[f64]) -> Option<Median> {
    let mut sorted: Vec<f64> = figures.iter().copied().filter(|figure| figure.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let (first, last) = (*sorted.first()?, *sorted.last()?);
    let (value, count) = (middle(&sorted), sorted.len());
    if count < 5 {
        return Some(Median { value, low: first, high: last, count });
    }
    let mut random = Random(0x51a7);
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let mut drawn: Vec<f64> = (0..count).map(|_| sorted[(random.next() % count as u64) as usize]).collect();
            drawn.sort_by(f64::total_cmp);
            middle(&drawn)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    let at = |part: f64| medians[((RESAMPLES - 1) as f64 * part) as usize];
    Some(Median { value, low: at(0.025), high: at(0.975), count })
}

const RESAMPLES: usize = 2000;

fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) { f64::midpoint(sorted[half - 1], sorted[half]) } else { sorted[half] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wild_figure_moves_neither_the_median_nor_its_interval_far() {
        let m = median(&[10.0, 10.1, 9.9, 10.0, 10.2, 9.8, 1000.0]).unwrap();
        assert!((m.value - 10.0).abs() < 0.2 && m.low >= 9.8 && m.high <= 10.2, "{m:?}");
    }

    #[test]
    fn few_figures_give_their_range() {
        assert_eq!(median(&[3.0, 1.0]), Some(Median { value: 2.0, low: 1.0, high: 3.0, count: 2 }));
        assert_eq!(median(&[]), None);
    }
}
