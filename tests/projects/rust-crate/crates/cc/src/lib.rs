//! Stands in for the crate `cc`: compiles files with `cc` and packs them with `ar`, for this machine.
use std::{env, path::PathBuf, process::Command};

#[derive(Default)]
pub struct Build {
    files: Vec<PathBuf>,
    objects: Vec<PathBuf>,
    arguments: Vec<String>,
}

impl Build {
    pub fn new() -> Build {
        Build::default()
    }

    pub fn cpp(&mut self, cpp: bool) -> &mut Build {
        assert!(!cpp, "this crate compiles only C");
        self
    }

    pub fn files(&mut self, files: &[&str]) -> &mut Build {
        self.files.extend(files.iter().map(PathBuf::from));
        self
    }

    pub fn includes(&mut self, folders: &[&str]) -> &mut Build {
        self.arguments.extend(folders.iter().map(|folder| format!("-I{folder}")));
        self
    }

    pub fn warnings(&mut self, _on: bool) -> &mut Build {
        self
    }

    pub fn opt_level_str(&mut self, level: &str) -> &mut Build {
        self.flag(&format!("-O{level}"))
    }

    pub fn object(&mut self, object: &str) -> &mut Build {
        self.objects.push(PathBuf::from(object));
        self
    }

    pub fn flag(&mut self, flag: &str) -> &mut Build {
        self.arguments.push(flag.to_string());
        self
    }

    pub fn compile(&self, name: &str) {
        let folder = PathBuf::from(env::var("OUT_DIR").unwrap());
        let mut objects = self.objects.clone();
        for (number, file) in self.files.iter().enumerate() {
            let object = folder.join(format!("{name}-{number}.o"));
            run(Command::new("cc").args(&self.arguments).arg("-fPIC").arg("-c").arg(file).arg("-o").arg(&object));
            objects.push(object);
        }
        run(Command::new("ar").arg("rcs").arg(folder.join(format!("lib{name}.a"))).args(&objects));
        println!("cargo:rustc-link-search=native={}", folder.display());
        println!("cargo:rustc-link-lib=static={name}");
    }
}

fn run(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}
