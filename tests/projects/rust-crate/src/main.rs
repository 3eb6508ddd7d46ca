//! Runs two models on inputs that are a pattern and prints what comes out.
use mlf_models::{alpha, beta, Error};

fn print(model: &str, values: &[i8]) {
    let texts: Vec<String> = values.iter().map(|value| value.to_string()).collect();
    println!("{model}: {}", texts.join(" "));
}

fn main() -> Result<(), Error> {
    for case in 0..3 {
        let input: [i8; 8] = core::array::from_fn(|i| (37 * case + 11 * i) as i8);
        let mut output = [0; 4];
        let mut workspace = alpha::Workspace::new();
        alpha::run(alpha::Inputs { t0: &input }, alpha::Outputs { t3: &mut output }, &mut workspace)?;
        print("alpha", &output);
        beta::run(beta::Inputs { t0: &input }, beta::Outputs { t3: &mut output }, &mut beta::Workspace::new())?;
        print("beta", &output);
    }
    Ok(())
}
