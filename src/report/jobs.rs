//! Answer of `jobs`: what runs on this machine are at.

use super::answer::Answer;
use super::format::bytes;
use super::json::{self, Message};
use super::table::{Align, Table};
use crate::queue::{Job, TrialState};

/// Jobs, the oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Jobs {
    /// One row each.
    pub jobs: Vec<Job>,
}

impl Answer for Jobs {
    fn human(&self, width: usize) -> String {
        if self.jobs.is_empty() {
            return "no jobs\n".to_owned();
        }
        let mut table = Table::new(&[
            ("job", Align::Right),
            ("model", Align::Left),
            ("target", Align::Left),
            ("state", Align::Left),
            ("priority", Align::Left),
            ("evaluations", Align::Right),
            ("disk", Align::Right),
            ("workspace", Align::Left),
        ]);
        for job in &self.jobs {
            let state = if job.is_cancelled && job.n_open != [0; 4] {
                "ending"
            } else {
                job.state.name()
            };
            table.push(vec![
                job.id.0.to_string(),
                job.model.clone(),
                job.target.clone(),
                state.to_owned(),
                job.priority.name().to_owned(),
                format!("{}/{}", job.used.n_evaluations, job.max_evaluations),
                bytes(job.used.disk_bytes),
                job.workspace.clone(),
            ]);
        }
        table.render(width)
    }

    fn json(&self) -> Vec<Message<'_>> {
        self.jobs.iter().map(message).collect()
    }
}

fn message(job: &Job) -> Message<'_> {
    let open = job.n_open.iter().zip(TrialState::ALL);
    Message::Job(json::Job {
        id: job.id.0,
        workspace: &job.workspace,
        model: &job.model,
        target: &job.target,
        holder: &job.holder,
        state: job.state,
        priority: job.priority,
        cancelled: job.is_cancelled,
        n_evaluations: job.used.n_evaluations,
        disk_bytes: job.used.disk_bytes,
        max_evaluations: job.max_evaluations,
        n_trials: open.map(|(&n, state)| (state.name(), n)).collect(),
        started_ms: job.started_ms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{JobId, JobState, Priority, Used};

    #[test]
    fn jobs_are_a_table_for_people_and_one_message_each_for_machines() {
        let job = Job {
            id: JobId(7),
            workspace: "/srv/somebody/projects/with/a/rather/long/path".to_owned(),
            model: "net".to_owned(),
            target: "cpu".to_owned(),
            holder: "`cargo metainfer adapt` (process 12)".to_owned(),
            priority: Priority::Low,
            state: JobState::Running,
            is_cancelled: false,
            max_evaluations: 300,
            used: Used {
                n_evaluations: 41,
                disk_bytes: 300 << 20,
            },
            n_open: [1, 2, 0, 1],
            started_ms: 1,
        };
        let jobs = Jobs { jobs: vec![job] };
        let text = jobs.human(80);
        assert!(
            text.lines().all(|line| line.chars().count() <= 100),
            "{text}"
        );
        let row = text.lines().nth(1).unwrap();
        assert!(row.contains("  7  net    cpu     running  low            41/300  300 MiB  /srv"));
        let json = serde_json::to_value(&jobs.json()[0]).unwrap();
        assert_eq!(json["reason"], "job");
        assert_eq!(json["n_trials"]["compiling"], 2);
        assert_eq!(json["disk_bytes"], 300 << 20);
        assert_eq!(Jobs::default().human(80), "no jobs\n");
    }
}
