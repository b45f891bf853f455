//! Dealing evaluations to tasks, and knowing when to stop.
//!
//! One evaluation carries a candidate for every occurrence of every subgraph, so the question is
//! not whose turn it is but which tasks try something new in it and which ride along with their
//! best. Trying costs little unless it is of no use or takes the whole evaluation down.

/// What an allocation needs to know of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskState {
    /// How often its subgraph occurs in the model.
    pub count: usize,
    /// Latency that one more proposal is expected to save in one occurrence, nanoseconds; `None`
    /// if nothing is known yet. See [`TaskSearch::expected_gain`](super::TaskSearch::expected_gain).
    pub expected_gain_ns: Option<f64>,
    /// Chance that a candidate of the task takes the whole evaluation down, so that it says
    /// nothing about the others either.
    pub risk: f64,
    /// Evaluations since the task last tried something new.
    pub n_idle: u32,
}

/// Gain below which a task rides along, relative to the latency of the model.
const NEGLIGIBLE: f64 = 5e-4;
/// Evaluations after which a task tries something new whatever it promises: a share of 10 %.
const MAX_IDLE: u32 = 9;
/// Chance of success of an evaluation below which no further task may add its risk.
const MIN_SUCCESS: f64 = 0.5;
/// Occurrences from which on one rides along, so that the best is sampled in every evaluation.
const MIN_COUNT_TO_RIDE: usize = 3;

/// Decides in how many of its occurrences each task tries something new; in the others, the best
/// known candidate rides along. `model_ns` is the latency that the best candidates add up to.
///
/// Tasks are served by what they promise, `count × expected_gain_ns`, those that waited too long
/// first. At least one task tries something new if there is any.
pub fn plan_evaluation(tasks: &[TaskState], model_ns: f64) -> Vec<usize> {
    let promise = |task: &TaskState| match task.expected_gain_ns {
        Some(gain_ns) => gain_ns * task.count as f64,
        None => f64::INFINITY,
    };
    let must = |task: &TaskState| task.n_idle >= MAX_IDLE;
    let mut order: Vec<usize> = (0..tasks.len())
        .filter(|&idx| tasks[idx].count > 0)
        .collect();
    let waited = |task: &TaskState| if must(task) { task.n_idle } else { 0 };
    order.sort_by(|&lhs, &rhs| {
        let (lhs, rhs) = (&tasks[lhs], &tasks[rhs]);
        (waited(rhs).cmp(&waited(lhs))).then(promise(rhs).total_cmp(&promise(lhs)))
    });
    let mut plan = vec![0; tasks.len()];
    let mut success = 1.0;
    let mut is_first = true;
    for idx in order {
        let task = &tasks[idx];
        let is_worth_it = must(task) || promise(task) > NEGLIGIBLE * model_ns;
        let n_new = match task.count {
            count if count >= MIN_COUNT_TO_RIDE => count - 1,
            count => count,
        };
        let survival = (1.0 - task.risk).clamp(0.0, 1.0).powi(n_new as i32);
        if is_first || (is_worth_it && success * survival >= MIN_SUCCESS) {
            plan[idx] = n_new;
            success *= survival;
            is_first = false;
        }
    }
    plan
}

/// Says when a search has nothing left to find.
#[derive(Debug, Clone, PartialEq)]
pub struct StopRule {
    min_gain: f64,
    patience: u32,
    n_below: u32,
}

impl StopRule {
    /// Stops once the expected gain has been below `min_gain` of the latency for `patience`
    /// evaluations in a row.
    pub fn new(min_gain: f64, patience: u32) -> Self {
        Self {
            min_gain,
            patience,
            n_below: 0,
        }
    }

    /// Takes note of the state after an evaluation. Returns the share of the latency that one more
    /// evaluation is expected to save, which is what stopping gives away, if it is time to stop.
    pub fn after_evaluation(&mut self, tasks: &[TaskState], model_ns: f64) -> Option<f64> {
        let gains = tasks.iter().filter(|task| task.count > 0);
        let gains: Option<f64> = gains
            .map(|task| Some(task.expected_gain_ns? * task.count as f64))
            .sum();
        let share = gains
            .filter(|_| model_ns > 0.0)
            .map_or(f64::INFINITY, |gain| gain / model_ns);
        self.n_below = if share < self.min_gain {
            self.n_below + 1
        } else {
            0
        };
        (self.n_below >= self.patience).then_some(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(count: usize, gain_ns: f64) -> TaskState {
        TaskState {
            count,
            expected_gain_ns: Some(gain_ns),
            risk: 0.0,
            n_idle: 0,
        }
    }

    #[test]
    fn what_promises_something_is_tried_and_the_rest_rides_along() {
        let unknown = TaskState {
            expected_gain_ns: None,
            ..task(1, 0.0)
        };
        let tasks = [
            task(1, 100.0),
            task(2, 0.1),
            unknown,
            task(5, 50.0),
            task(0, 1e9),
        ];
        assert_eq!(plan_evaluation(&tasks, 1e5), [1, 0, 1, 4, 0]);
    }

    #[test]
    fn the_best_promise_is_tried_even_if_it_is_negligible() {
        assert_eq!(plan_evaluation(&[task(1, 0.0), task(2, 1e-9)], 1e6), [0, 2]);
        assert_eq!(plan_evaluation(&[], 1e6), [0; 0]);
    }

    #[test]
    fn risks_do_not_add_up_beyond_an_even_chance() {
        let risky = |gain_ns| TaskState {
            risk: 0.3,
            ..task(1, gain_ns)
        };
        let tasks = [risky(10.0), risky(30.0), task(1, 1.0), risky(20.0)];
        assert_eq!(plan_evaluation(&tasks, 100.0), [0, 1, 1, 0]);
        let deadly = TaskState {
            risk: 1.0,
            ..task(1, 5.0)
        };
        assert_eq!(plan_evaluation(&[deadly], 100.0), [1]);
    }

    #[test]
    fn no_task_starves() {
        let mut tasks = vec![task(1, 1000.0); 6];
        for task in &mut tasks {
            task.risk = 0.4;
        }
        tasks[2].expected_gain_ns = Some(0.0);
        tasks[4].expected_gain_ns = Some(f64::MIN_POSITIVE);
        let mut n_tried = [0; 6];
        for _ in 0..200 {
            let plan = plan_evaluation(&tasks, 1e6);
            for (idx, task) in tasks.iter_mut().enumerate() {
                n_tried[idx] += plan[idx];
                task.n_idle = if plan[idx] > 0 { 0 } else { task.n_idle + 1 };
                assert!(task.n_idle <= MAX_IDLE + 6, "task {idx}");
            }
        }
        assert!(n_tried.iter().all(|&n| n >= 13), "{n_tried:?}");
    }

    #[test]
    fn stopping_takes_several_evaluations_without_promise() {
        let mut rule = StopRule::new(0.01, 3);
        let quiet = [task(2, 2.0), task(1, 1.0)];
        let busy = [task(2, 2.0), task(1, 10.0)];
        let unknown = [
            task(2, 2.0),
            TaskState {
                expected_gain_ns: None,
                ..task(1, 0.0)
            },
        ];
        let mut after = |tasks: &[TaskState]| rule.after_evaluation(tasks, 1000.0);
        assert_eq!(after(&quiet), None);
        assert_eq!(after(&quiet), None);
        assert_eq!(after(&busy), None);
        assert_eq!(after(&quiet), None);
        assert_eq!(after(&quiet), None);
        assert_eq!(after(&quiet), Some(0.005));
        assert_eq!(after(&unknown), None);
        assert_eq!(StopRule::new(0.01, 1).after_evaluation(&[], 0.0), None);
    }
}
