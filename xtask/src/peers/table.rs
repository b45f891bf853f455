//! Tables for people, at most 100 columns wide.

use super::answer::{Answer, Contender, Start, geometric_mean};

/// Returns a race as a table: what each engine takes, how far it is from onnxruntime, and what a
/// process takes to its first result.
pub(super) fn race(answer: &Answer) -> String {
    let clock = match answer.threads {
        1 => "processor time".to_owned(),
        n => format!("wall time on {n} threads"),
    };
    let mut lines = vec![format!("{}, {clock}", answer.model)];
    lines.push(format!(
        "  {:22}{:>9}{:>7}{:>9}{:>9}{:>6}{:>9}{:>9}{:>9}{:>9}",
        "",
        "p25 µs",
        "/peer",
        "noise",
        "real",
        "steps",
        "load ms",
        "first ms",
        "peak MiB",
        "disk MiB"
    ));
    for engine in &answer.engines {
        let Start {
            load_ms,
            first_ms,
            peak_memory_mib,
            disk_mib,
        } = &engine.start;
        let ratio = optional(engine.over_fastest_peer, 3);
        let steps = optional(engine.quantisation_steps, 1);
        let disk = optional(*disk_mib, 1);
        let mark = |error: &dyn Fn(&Contender) -> f64| {
            let is_far = engine.is_ours() && engine.precision == "f32";
            let is_far = is_far && error(engine) > answer.limit(error);
            let mark = if is_far { "!" } else { "" };
            format!("{:.1e}{mark}", error(engine))
        };
        lines.push(format!(
            "  {:22}{:>9.1}{ratio:>7}{:>9}{:>9}{steps:>6}{load_ms:>9.2}{first_ms:>9.2}{peak_memory_mib:>9.1}{disk:>9}",
            engine.name,
            answer.us(engine),
            mark(&|engine| engine.relative_error_noise),
            mark(&|engine| engine.relative_error_real),
        ));
    }
    for (name, reason) in &answer.missing {
        lines.push(format!("  {name}: not run: {}", shortened(reason)));
    }
    lines.join("\n")
}

/// Returns our time over the fastest peer's: a row a model, a column a build, and geometric means.
pub(super) fn summary(answers: &[Answer]) -> String {
    let mut columns: Vec<(u32, String)> = Vec::new();
    for answer in answers {
        for engine in answer.engines.iter().filter(|engine| engine.is_ours()) {
            let column = (answer.threads, engine.name.clone());
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
    }
    columns.sort();
    let mut models: Vec<&str> = Vec::new();
    for answer in answers {
        if !models.contains(&answer.model.as_str()) {
            models.push(&answer.model);
        }
    }
    let ratio = |model: &str, (threads, name): &(u32, String)| {
        let answer = answers
            .iter()
            .find(|answer| answer.model == model && answer.threads == *threads)?;
        let engine = answer.engines.iter().find(|engine| engine.name == *name)?;
        engine.over_fastest_peer
    };
    let title = |(threads, name): &(u32, String)| match threads {
        1 => name.clone(),
        n => format!("{name} ×{n}"),
    };
    let row = |name: &str, cells: Vec<String>| {
        let cell = |text: String, cell: &String| text + &format!("{cell:>17}");
        cells.iter().fold(format!("{name:16}"), cell)
    };
    let mut lines = vec!["our time over the fastest peer's".to_owned()];
    lines.push(row("", columns.iter().map(title).collect()));
    for model in &models {
        let cells = columns
            .iter()
            .map(|column| optional(ratio(model, column), 3));
        lines.push(row(model, cells.collect()));
    }
    let means = columns.iter().map(|column| {
        let values: Vec<f64> = models
            .iter()
            .filter_map(|model| ratio(model, column))
            .collect();
        optional(geometric_mean(&values), 3)
    });
    lines.push(row("geometric mean", means.collect()));
    lines.join("\n")
}

fn optional(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
}

/// Returns the line that says what is wrong: a program's first `error`, or else the last line, with
/// which a traceback ends.
fn shortened(reason: &str) -> String {
    let lines = || reason.lines().map(str::trim);
    let last = || lines().rfind(|line| !line.is_empty());
    let line = lines().find(|line| line.starts_with("error")).or_else(last);
    line.unwrap_or_default().chars().take(160).collect()
}

#[cfg(test)]
mod tests {
    use super::super::answer::tests::answer;
    use super::*;

    #[test]
    fn summary_has_a_column_a_build_and_means() {
        let ours = |us| {
            [
                ("tuned f32", "ours", "f32", us),
                ("a", "openvino", "f32", 4.0),
            ]
        };
        let mut answers = vec![
            answer(1, &ours(2.0)),
            answer(1, &ours(8.0)),
            answer(2, &ours(3.0)),
        ];
        answers[1].model = "n".to_owned();
        answers.iter_mut().for_each(Answer::judge);
        let expected = "our time over the fastest peer's\n                        tuned f32     tuned f32 ×2\nm                           0.500            0.750\nn                           2.000                –\ngeometric mean              1.000            0.750";
        assert_eq!(summary(&answers), expected);
    }

    #[test]
    fn race_says_what_is_missing_and_what_is_too_far() {
        let mut answer = answer(1, &[("tuned f32", "ours", "f32", 2.0)]);
        answer.engines[0].relative_error_real = 1e-2;
        let reason = "Traceback:\n  line\nError: no such operator\n\n".to_owned();
        answer.missing.insert("tract f32".to_owned(), reason);
        let text = race(&answer);
        assert!(text.contains("1.0e-6"), "{text}");
        assert!(text.contains("1.0e-2!"), "{text}");
        assert!(
            text.ends_with("tract f32: not run: Error: no such operator"),
            "{text}"
        );
        let reason = "`deploy` ended with 101\nerror: threads\n\nerror: bad file\nhelp: x";
        assert_eq!(shortened(reason), "error: threads");
        let width = text.lines().map(|line| line.chars().count()).max();
        assert!(width <= Some(100), "{text}");
    }
}
