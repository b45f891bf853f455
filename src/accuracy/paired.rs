//! Who is right on the same samples.

/// Samples that one of two models gets right and the other does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Paired {
    /// Samples with labels.
    pub n: usize,
    /// Those that both get right.
    pub both: usize,
    /// Those that only the teacher gets right.
    pub lost: usize,
    /// Those that only the student gets right.
    pub gained: usize,
}

impl Paired {
    /// Takes in one sample.
    pub fn add(&mut self, teacher: bool, student: bool) {
        self.n += 1;
        match (teacher, student) {
            (true, true) => self.both += 1,
            (true, false) => self.lost += 1,
            (false, true) => self.gained += 1,
            (false, false) => {}
        }
    }

    /// Returns by how much the share of right answers falls; negative if it rises.
    pub fn drop(&self) -> f64 {
        (self.lost as f64 - self.gained as f64) / self.n.max(1) as f64
    }

    /// Returns the standard error of [`drop`](Self::drop): only samples that the two disagree on
    /// add to it (the test of `McNemar`, Psychometrika 12, 1947).
    pub fn standard_error(&self) -> f64 {
        ((self.lost + self.gained) as f64).sqrt() / self.n.max(1) as f64
    }

    /// Returns the share of right answers of the teacher and of the student.
    pub fn top1(&self) -> [f64; 2] {
        let share = |n: usize| n as f64 / self.n.max(1) as f64;
        [share(self.both + self.lost), share(self.both + self.gained)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hand_computed() {
        let mut paired = Paired::default();
        for idx in 0..1000 {
            paired.add(idx < 900, (16..909).contains(&idx));
        }
        // 16 lost, 9 gained.
        assert_eq!((paired.lost, paired.gained, paired.both), (16, 9, 884));
        assert!((paired.drop() - 0.007).abs() < 1e-12);
        assert!((paired.standard_error() - 0.005).abs() < 1e-12);
        let [teacher, student] = paired.top1();
        assert!((teacher - 0.9).abs() < 1e-12 && (student - 0.893).abs() < 1e-12);
    }

    #[test]
    fn no_samples_say_nothing() {
        let none = Paired::default();
        assert_eq!((none.drop(), none.standard_error()), (0.0, 0.0));
    }
}
