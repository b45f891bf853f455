//! Moves within a space: enumerating, drawing, changing single parameters.

use rand::{Rng, RngExt};

use super::bound::Point;
use super::{Mapping, SearchSpace};

/// Steps after which a walk that is to find something gives up, about a tenth of a second.
pub(super) const MAX_STEPS: usize = 1 << 21;
/// Random points tried before a space is enumerated instead.
const MAX_REJECTIONS: usize = 1000;
/// Valid points kept when a sparse space was enumerated.
const MAX_LISTED: usize = 1 << 17;
/// Tries to find a valid perturbation.
const MAX_PERTURBATIONS: usize = 32;

/// A depth-first walk over the valid points: parameters are set in order, and a constraint is
/// checked as soon as its last parameter is set.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    space: &'a SearchSpace,
    /// Values to try, in this order, by parameter.
    order: Vec<Vec<u16>>,
    /// Constraints by the parameter that completes them.
    completed_by: Vec<Vec<usize>>,
    /// Position in `order`, by parameter.
    at: Vec<usize>,
    point: Point,
    depth: usize,
    steps_left: usize,
    finished: bool,
}

impl<'a> Walk<'a> {
    /// Starts a walk of at most `max_steps` that tries the values of each parameter in the order
    /// given.
    pub(super) fn new(space: &'a SearchSpace, order: Vec<Vec<u16>>, max_steps: usize) -> Self {
        let n_params = order.len();
        let mut walk = Self {
            space,
            order,
            completed_by: vec![Vec::new(); n_params],
            at: vec![0; n_params],
            point: vec![0; n_params],
            depth: 0,
            steps_left: max_steps,
            finished: false,
        };
        for (idx, constraint) in space.bound().constraints.iter().enumerate() {
            match constraint.function.scope.last() {
                Some(&param) => walk.completed_by[param].push(idx),
                None => walk.finished |= !walk.holds(idx),
            }
        }
        walk
    }

    /// Returns the next valid point, or `None` after the last one or the last step.
    pub(super) fn next_point(&mut self) -> Option<Point> {
        while !self.finished {
            self.steps_left = self.steps_left.checked_sub(1)?;
            if self.depth == self.order.len() {
                let valid = self.space.passes_filters(&self.point);
                self.retreat();
                if valid {
                    return Some(self.point.clone());
                }
                continue;
            }
            let param = self.depth;
            let Some(&value) = self.order[param].get(self.at[param]) else {
                self.at[param] = 0;
                self.retreat();
                continue;
            };
            self.point[param] = value;
            if self.completed_by[param].iter().all(|&idx| self.holds(idx)) {
                self.depth += 1;
            } else {
                self.at[param] += 1;
            }
        }
        None
    }

    /// Returns whether everything was visited.
    pub(super) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Goes on with the next value of the previous parameter.
    fn retreat(&mut self) {
        match self.depth.checked_sub(1) {
            Some(previous) => {
                self.depth = previous;
                self.at[previous] += 1;
            }
            None => self.finished = true,
        }
    }

    fn holds(&self, constraint: usize) -> bool {
        let bound = self.space.bound();
        let function = &bound.constraints[constraint].function;
        function.at(bound, &self.point) == Some(true)
    }
}

impl SearchSpace {
    /// Iterates over all valid mappings, lazily; the last parameter varies fastest.
    pub fn enumerate(&self) -> impl Iterator<Item = Mapping> + '_ {
        let mut walk = Walk::new(self, self.allowed().to_vec(), usize::MAX);
        std::iter::from_fn(move || walk.next_point()).map(|point| self.mapping(&point))
    }

    /// Draws a valid mapping, each with the same chance, or `None` if nothing is valid.
    ///
    /// By rejection; a space in which that fails is enumerated once. Only if it is so large and
    /// so sparse that enumerating is given up too, the result is the first valid mapping of a
    /// walk in random order (not uniform), or `None`.
    pub fn sample(&self, rng: &mut impl Rng) -> Option<Mapping> {
        self.sample_point(rng).map(|point| self.mapping(&point))
    }

    /// Returns the valid mappings that differ from `mapping` in exactly one parameter.
    ///
    /// `mapping` itself may break constraints; the result is empty if it is not made of the
    /// space's parameters and values.
    pub fn neighbours(&self, mapping: &Mapping) -> Vec<Mapping> {
        let Ok(mut point) = self.locate(mapping) else {
            return Vec::new();
        };
        let mut neighbours = Vec::new();
        for (param, allowed) in self.allowed().iter().enumerate() {
            let own = point[param];
            for &idx in allowed.iter().filter(|&&idx| idx != own) {
                point[param] = idx;
                if self.is_valid_point(&point) {
                    neighbours.push(self.mapping(&point));
                }
            }
            point[param] = own;
        }
        neighbours
    }

    /// Draws a valid mapping that differs from `mapping` in at most `n_changes` parameters, if one
    /// is found in a few tries. One that is not made of the space's values gives `None`.
    pub fn perturbed(
        &self,
        mapping: &Mapping,
        n_changes: usize,
        rng: &mut impl Rng,
    ) -> Option<Mapping> {
        let start = self.locate(mapping).ok()?;
        let open: Vec<usize> = (0..start.len())
            .filter(|&p| self.allowed()[p].len() > 1)
            .collect();
        if open.is_empty() {
            return None;
        }
        for _ in 0..MAX_PERTURBATIONS {
            let mut point = start.clone();
            for _ in 0..n_changes {
                let param = open[rng.random_range(0..open.len())];
                let allowed = &self.allowed()[param];
                point[param] = allowed[rng.random_range(0..allowed.len())];
            }
            if point != start && self.is_valid_point(&point) {
                return Some(self.mapping(&point));
            }
        }
        None
    }

    fn sample_point(&self, rng: &mut impl Rng) -> Option<Point> {
        if self.allowed().iter().any(Vec::is_empty) {
            return None;
        }
        if !self.is_listed() {
            for _ in 0..MAX_REJECTIONS {
                let draw = |allowed: &Vec<u16>| allowed[rng.random_range(0..allowed.len())];
                let point: Point = self.allowed().iter().map(draw).collect();
                if self.is_valid_point(&point) {
                    return Some(point);
                }
            }
        }
        match self.listed(|| self.list()) {
            Some([]) => None,
            Some(points) => Some(points[rng.random_range(0..points.len())].clone()),
            None => {
                let mut order = self.allowed().to_vec();
                for values in &mut order {
                    shuffle(values, rng);
                }
                Walk::new(self, order, MAX_STEPS).next_point()
            }
        }
    }

    /// Lists all valid points, unless there are too many or it takes too long.
    fn list(&self) -> Option<Vec<Point>> {
        let mut walk = Walk::new(self, self.allowed().to_vec(), MAX_STEPS);
        let mut points = Vec::new();
        while let Some(point) = walk.next_point() {
            points.push(point);
            if points.len() > MAX_LISTED {
                return None;
            }
        }
        walk.is_finished().then_some(points)
    }
}

fn shuffle(values: &mut [u16], rng: &mut impl Rng) {
    for idx in (1..values.len()).rev() {
        values.swap(idx, rng.random_range(0..=idx));
    }
}
