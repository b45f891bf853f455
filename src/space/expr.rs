//! Expressions of a template: minijinja's expression syntax over parameter values and facts.
//!
//! `//` and `%` are integer division and remainder, `/` gives a float. Besides what minijinja has
//! (`range(a, b)` without `b`, `in`, `if … else`), there are `min(a, b, …)`, `max(a, b, …)`,
//! `ceil_div(a, b)`, `gcd(a, b)` and `divisors(n)`. An evaluation takes about half a microsecond, so that
//! whoever needs many of them tabulates (see `bound`).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, LazyLock};

use minijinja::value::{Object, Rest};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value};

use super::{Facts, ParamValue};

/// Largest argument of `divisors`.
const MAX_DIVISORS_OF: i64 = 1 << 32;

/// Names of the functions that an expression may call.
const FUNCTIONS: [&str; 6] = ["ceil_div", "divisors", "gcd", "max", "min", "range"];

/// Immutable: only the syntax and the functions above.
static LANGUAGE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut language = Environment::new();
    language.set_undefined_behavior(UndefinedBehavior::Strict);
    language.add_function("min", |items: Rest<Value>| extreme(items, false));
    language.add_function("max", |items: Rest<Value>| extreme(items, true));
    language.add_function("ceil_div", ceil_div);
    language.add_function("gcd", gcd);
    language.add_function("divisors", divisors);
    language
});

/// A compiled expression.
#[derive(Clone)]
pub(super) struct Expr {
    text: Arc<str>,
    compiled: Arc<minijinja::Expression<'static, 'static>>,
    names: Arc<BTreeSet<String>>,
}

/// What the names of an expression mean: facts, and parameters which come first.
#[derive(Debug)]
pub(super) struct Scope {
    facts: Arc<Facts>,
    params: Vec<(Arc<str>, Value)>,
}

impl Expr {
    /// Compiles an expression.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let compiled = LANGUAGE.compile_expression_owned(text.to_owned())?;
        let names = compiled
            .undeclared_variables(false)
            .into_iter()
            .filter(|name| !FUNCTIONS.contains(&name.as_str()))
            .collect();
        Ok(Self {
            text: text.into(),
            compiled: Arc::new(compiled),
            names: Arc::new(names),
        })
    }

    /// Returns the source text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the names that must be defined, sorted.
    pub(super) fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    /// Evaluates the expression.
    pub(super) fn eval(&self, scope: Scope) -> Result<Value, Error> {
        self.compiled.eval(Value::from_object(scope))
    }

    /// Evaluates the expression as a condition.
    pub(super) fn eval_bool(&self, scope: Scope) -> Result<bool, Error> {
        self.eval(scope).map(|value| value.is_true())
    }

    /// Evaluates the expression as a finite number; truth is 1.
    pub(super) fn eval_number(&self, scope: Scope) -> Result<f64, Error> {
        let value = self.eval(scope)?;
        match f64::try_from(value.clone()) {
            Ok(number) if number.is_finite() => Ok(number),
            _ if value.kind() == minijinja::value::ValueKind::Bool => {
                Ok(f64::from(u8::from(value.is_true())))
            }
            _ => Err(invalid(format!("`{value}` is not a finite number"))),
        }
    }

    /// Evaluates the expression as a list of numbers and words.
    pub(super) fn eval_list(&self, scope: Scope) -> Result<Vec<ParamValue>, Error> {
        let items = self.eval(scope)?.try_iter()?;
        items.map(|item| param_value(&item)).collect()
    }
}

impl Scope {
    /// Defines names.
    pub(super) fn new(facts: Arc<Facts>, params: Vec<(Arc<str>, Value)>) -> Self {
        Self { facts, params }
    }
}

impl Object for Scope {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        let param = self.params.iter().find(|(name, _)| &**name == key);
        match param {
            Some((_, value)) => Some(value.clone()),
            None => self.facts.get(key).map(template_value),
        }
    }
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expr({})", self.text)
    }
}

/// Converts a parameter's value to what expressions calculate with.
pub(super) fn template_value(value: &ParamValue) -> Value {
    match value {
        ParamValue::Int(number) => Value::from(*number),
        ParamValue::Word(word) => Value::from(word.as_str()),
    }
}

/// Converts the result of an expression to a parameter's value.
pub(super) fn param_value(value: &Value) -> Result<ParamValue, Error> {
    if let Some(word) = value.as_str() {
        return Ok(word.into());
    }
    i64::try_from(value.clone())
        .map(ParamValue::Int)
        .map_err(|_| invalid(format!("`{value}` is neither a whole number nor a word")))
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

fn extreme(items: Rest<Value>, largest: bool) -> Result<Value, Error> {
    let best = if largest {
        items.0.into_iter().max()
    } else {
        items.0.into_iter().min()
    };
    best.ok_or_else(|| invalid("`min` and `max` need an argument".to_owned()))
}

fn ceil_div(dividend: i64, divisor: i64) -> Result<i64, Error> {
    if divisor <= 0 || dividend < 0 {
        let what = format!("`ceil_div({dividend}, {divisor})` needs a positive divisor");
        return Err(invalid(what));
    }
    Ok(dividend / divisor + i64::from(dividend % divisor != 0))
}

fn gcd(lhs: i64, rhs: i64) -> Result<i64, Error> {
    if lhs <= 0 || rhs <= 0 {
        return Err(invalid(format!(
            "`gcd({lhs}, {rhs})` needs positive numbers"
        )));
    }
    let (mut lhs, mut rhs) = (lhs, rhs);
    while rhs != 0 {
        (lhs, rhs) = (rhs, lhs % rhs);
    }
    Ok(lhs)
}

/// Returns the divisors of a positive number, ascending.
fn divisors(number: i64) -> Result<Vec<i64>, Error> {
    if !(1..=MAX_DIVISORS_OF).contains(&number) {
        return Err(invalid(format!("`divisors({number})` is out of range")));
    }
    let small = (1..)
        .take_while(|d| d * d <= number)
        .filter(|d| number % d == 0);
    let mut all: Vec<i64> = small.flat_map(|d| [d, number / d]).collect();
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let facts = Facts::from([
            ("ow".to_owned(), 56.into()),
            ("isa".to_owned(), "v4".into()),
        ]);
        let scope = Scope::new(Arc::new(facts), vec![("tile".into(), Value::from(8))]);
        let actual = Expr::parse(text).and_then(|expr| expr.eval(scope));
        let actual = actual.map_or_else(|error| format!("error: {error:#}"), |v| v.to_string());
        assert!(
            actual == expected || (expected == "error" && actual.starts_with("error")),
            "`{text}` gives `{actual}`, not `{expected}`"
        );
    }

    #[test]
    fn parameters_and_facts_are_in_scope() {
        check("ow // tile + ow % tile", "7");
        check("isa == 'v4' and tile in [4, 8]", "True");
        check("[1, 2] if isa == 'v4' else [1]", "[1, 2]");
        check("absent + 1", "error");
    }

    #[test]
    fn functions_refuse_what_they_are_not_defined_for() {
        check("divisors(12)", "[1, 2, 3, 4, 6, 12]");
        check("divisors(1)", "[1]");
        check("divisors(0)", "error");
        check("divisors(-4)", "error");
        check("min(ow, 28, tile)", "8");
        check("max(ow, 28)", "56");
        check("min()", "error");
        check("ceil_div(ow, 24)", "3");
        check("ceil_div(ow, 0)", "error");
        check("gcd(ow, 24)", "8");
        check("gcd(ow, 0)", "error");
        check("ow // 0", "error");
        check("ow % 0", "error");
    }

    #[test]
    fn names_are_what_must_be_defined() {
        let expr = Expr::parse("min(a, b) in divisors(c) or range(1, d)").unwrap();
        assert_eq!(
            expr.names().iter().collect::<Vec<_>>(),
            ["a", "b", "c", "d"]
        );
    }
}
