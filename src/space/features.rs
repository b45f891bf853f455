//! Mappings as numbers, for surrogates.

use super::{Mapping, ParamValue, SearchSpace};

impl SearchSpace {
    /// Returns the features of a mapping, as [`feature_names`](Self::feature_names) names them:
    /// numbers as they are and as log2 of one more, words one-hot, then the template's features.
    ///
    /// `None` if the mapping is not made of the space's parameters and values.
    pub fn encode(&self, mapping: &Mapping) -> Option<Vec<f64>> {
        let point = self.locate(mapping).ok()?;
        let mut features = Vec::new();
        for (param, &idx) in self.bound().params.iter().zip(&point) {
            let idx = usize::from(idx);
            if let (true, ParamValue::Int(number)) = (param.is_numeric(), &param.values[idx]) {
                let number = *number as f64;
                features.extend([number, (number.max(0.0) + 1.0).log2()]);
            } else {
                let one_hot = |other| f64::from(u8::from(other == idx));
                features.extend((0..param.values.len()).map(one_hot));
            }
        }
        let derived = self.bound().features.iter();
        features.extend(derived.map(|f| f.function.at(self.bound(), &point).unwrap_or(0.0)));
        Some(features)
    }

    /// Returns what the numbers of [`encode`](Self::encode) are, in order.
    pub fn feature_names(&self) -> Vec<String> {
        let params = self.bound().params.iter().flat_map(|param| {
            let name = &param.name;
            if param.is_numeric() {
                vec![name.to_string(), format!("log2({name} + 1)")]
            } else {
                let one_hot = param.values.iter();
                one_hot.map(|value| format!("{name} == {value}")).collect()
            }
        });
        let derived = self
            .bound()
            .features
            .iter()
            .map(|feature| feature.name.clone());
        params.chain(derived).collect()
    }
}
