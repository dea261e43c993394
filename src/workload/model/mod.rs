//! Neural networks as tables of layers: the shapes of the publication, and the sizes that follow from them.
//!
//! ```text
//!  model/vgg16.toml ──┐
//!  model/resnet50.toml├──▶ Model: per layer shapes, parameters, operations ──▶ train ──▶ Trace
//!  a file of one's own┘
//! ```
//!
//! A table gives the shape of the image and, per layer, its kind, its channels or features, kernel, stride and padding. Everything else is
//! computed here:
//!
//! | kind | output | parameters | multiply-adds of an image |
//! |---|---|---|---|
//! | `convolution` | (size + 2 padding - kernel) / stride + 1, rounded down | in × out × kernel², and out with `bias`, 2 out with `normalised` | in × out × kernel² × rows × columns of the output |
//! | `dense` | `features` | in × out, and out unless `bias = false` | in × out |
//! | `pool` | as a convolution, channels as they are | 0 | not counted |
//! | `average` | one row and column | 0 | not counted |
//!
//! An operation is an addition or a multiplication: two a multiply-add. Normalisation, activations, pooling and the sums of shortcuts are
//! not counted, as in the publications' own figures.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use serde::Deserialize;

use super::Error;

/// Tables that come with the program: name and text.
pub const SHIPPED: &[(&str, &str)] =
    &[("vgg16", include_str!("vgg16.toml")), ("resnet50", include_str!("resnet50.toml"))];

/// A network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// Its name.
    pub name: String,
    /// Where its shapes are published.
    pub source: String,
    /// Its layers, from the image on.
    pub layers: Vec<Layer>,
}

/// A layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Its name.
    pub name: String,
    /// What goes in.
    pub input: Shape,
    /// What comes out.
    pub output: Shape,
    /// Weights, biases, scales and shifts: what is learnt.
    pub parameters: u64,
    /// Multiply-adds of one image, forward.
    pub multiply_adds: u64,
    /// It reads the image: no gradient goes further back.
    pub reads_image: bool,
}

/// Channels, rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Shape(pub u64, pub u64, pub u64);

impl Shape {
    /// Elements.
    pub fn elements(self) -> u64 {
        self.0 * self.1 * self.2
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {} x {}", self.0, self.1, self.2)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelFile {
    name: String,
    #[serde(default)]
    source: String,
    input: Shape,
    layer: Vec<LayerFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LayerFile {
    name: String,
    kind: LayerKind,
    /// The layer that it reads; the one before it.
    from: Option<String>,
    /// Another layer, whose output is added to its own.
    adds: Option<String>,
    channels: Option<u64>,
    features: Option<u64>,
    kernel: Option<u64>,
    stride: Option<u64>,
    padding: Option<u64>,
    bias: Option<bool>,
    #[serde(default)]
    normalised: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum LayerKind {
    Convolution,
    Pool,
    Average,
    Dense,
}

/// No number of a table is above this.
const MOST: u64 = 1 << 20;
/// A layer has no more parameters, multiply-adds or elements than this.
const LARGEST: u64 = 1 << 48;

impl Model {
    /// The shipped table of this name, or the one in this file.
    ///
    /// # Errors
    /// There is none, or what is wrong with it.
    pub fn read(name: &str) -> Result<Model, Error> {
        if let Some((_, text)) = SHIPPED.iter().find(|(known, _)| *known == name) {
            return Model::parse(Path::new(name), text);
        }
        let path = Path::new(name);
        let text = std::fs::read_to_string(path).map_err(|error| {
            let names: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
            let error = Error::new(path, format!("there is no such table of layers: {error}"));
            error.expected(format!("{}, or a file of layers", names.join(", ")))
        })?;
        Model::parse(path, &text)
    }

    /// Reads a table; `path` is what it is called.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(path: &Path, text: &str) -> Result<Model, Error> {
        let file: ModelFile = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            Error::new(path, error.message().to_owned()).line(line as u64)
        })?;
        Reader { path, places: HashMap::new(), layers: Vec::new(), used: Vec::new() }.read(file)
    }

    /// Everything that is learnt.
    pub fn parameters(&self) -> u64 {
        self.layers.iter().map(|layer| layer.parameters).sum()
    }

    /// Multiply-adds of one image, forward.
    pub fn multiply_adds(&self) -> u64 {
        self.layers.iter().map(|layer| layer.multiply_adds).sum()
    }
}

struct Reader<'a> {
    path: &'a Path,
    places: HashMap<String, usize>,
    layers: Vec<Layer>,
    /// Some layer reads it.
    used: Vec<bool>,
}

impl Reader<'_> {
    fn error(&self, layer: &str, what: impl Into<String>) -> Error {
        Error::new(self.path, what).node(format!("layer \"{layer}\""))
    }

    fn read(mut self, file: ModelFile) -> Result<Model, Error> {
        let Shape(channels, rows, columns) = file.input;
        if [channels, rows, columns].iter().any(|side| !(1..=MOST).contains(side)) {
            let error = Error::new(self.path, format!("an image of {channels} x {rows} x {columns}"));
            return Err(error.expected(format!("channels, rows and columns from 1 to {MOST}")));
        }
        if file.layer.is_empty() {
            return Err(Error::new(self.path, "it has no layers"));
        }
        for layer in &file.layer {
            let one = self.layer(layer, file.input)?;
            if self.places.insert(layer.name.clone(), self.layers.len()).is_some() {
                return Err(self.error(&layer.name, "another layer has this name"));
            }
            self.layers.push(one);
            self.used.push(false);
        }
        let last = self.layers.len() - 1;
        if let Some(idle) = self.used[..last].iter().position(|used| !used) {
            return Err(self
                .error(&self.layers[idle].name, "no layer reads it")
                .expected("`from` or `adds` of another"));
        }
        Ok(Model { name: file.name, source: file.source, layers: self.layers })
    }

    /// The output of an earlier layer.
    fn output(&mut self, layer: &LayerFile, of: &str) -> Result<Shape, Error> {
        let Some(&at) = self.places.get(of) else {
            return Err(self.error(&layer.name, format!("no layer before it has the name \"{of}\"")));
        };
        self.used[at] = true;
        Ok(self.layers[at].output)
    }

    /// A number of a layer, within its limits.
    fn number(&self, layer: &LayerFile, key: &str, value: Option<u64>, default: Option<u64>) -> Result<u64, Error> {
        let least = u64::from(key != "padding");
        match value.or(default) {
            Some(number) if (least..=MOST).contains(&number) => Ok(number),
            Some(number) => {
                let error = self.error(&layer.name, format!("its `{key}` is {number}"));
                Err(error.expected(format!("{least} to {MOST}")))
            }
            None => Err(self.error(&layer.name, format!("it has no `{key}`"))),
        }
    }

    fn layer(&mut self, of: &LayerFile, image: Shape) -> Result<Layer, Error> {
        let reads_image = self.layers.is_empty();
        let input = match (&of.from, self.layers.last()) {
            (Some(name), _) => self.output(of, name)?,
            (None, None) => image,
            (None, Some(last)) => {
                let (at, output) = (self.layers.len() - 1, last.output);
                self.used[at] = true;
                output
            }
        };
        self.superfluous(of)?;
        let (output, parameters, multiply_adds) = match of.kind {
            LayerKind::Convolution => self.convolution(of, input)?,
            LayerKind::Pool => (self.slide(of, input, input.0)?, 0, 0),
            LayerKind::Average => (Shape(input.0, 1, 1), 0, 0),
            LayerKind::Dense => {
                let features = self.number(of, "features", of.features, None)?;
                let weights = input.elements().saturating_mul(features);
                let bias = if of.bias.unwrap_or(true) { features } else { 0 };
                (Shape(features, 1, 1), weights.saturating_add(bias), weights)
            }
        };
        if [parameters, multiply_adds, output.0.saturating_mul(output.1.saturating_mul(output.2))]
            .iter()
            .any(|&count| count > LARGEST)
        {
            return Err(self
                .error(&of.name, "it is too large")
                .expected(format!("no more than {LARGEST} of anything")));
        }
        if let Some(other) = &of.adds {
            let added = self.output(of, other)?;
            if added != output {
                let what = format!("it adds \"{other}\" of {added}, and has {output} itself");
                return Err(self.error(&of.name, what).expected("two outputs of one shape"));
            }
        }
        Ok(Layer { name: of.name.clone(), input, output, parameters, multiply_adds, reads_image })
    }

    /// Refuses keys that mean nothing to a kind of layer.
    fn superfluous(&self, of: &LayerFile) -> Result<(), Error> {
        let (slides, convolves) =
            (matches!(of.kind, LayerKind::Convolution | LayerKind::Pool), of.kind == LayerKind::Convolution);
        let keys = [
            ("channels", of.channels.is_some(), convolves),
            ("features", of.features.is_some(), of.kind == LayerKind::Dense),
            ("kernel", of.kernel.is_some(), slides),
            ("stride", of.stride.is_some(), slides),
            ("padding", of.padding.is_some(), slides),
            ("bias", of.bias.is_some(), convolves || of.kind == LayerKind::Dense),
            ("normalised", of.normalised, convolves),
        ];
        match keys.iter().find(|(_, given, means)| *given && !means) {
            Some((key, ..)) => Err(self.error(&of.name, format!("`{key}` means nothing to a layer of this kind"))),
            None => Ok(()),
        }
    }

    /// Where a kernel can stand.
    fn slide(&self, of: &LayerFile, input: Shape, channels: u64) -> Result<Shape, Error> {
        let kernel = self.number(of, "kernel", of.kernel, None)?;
        let stride = self.number(of, "stride", of.stride, Some(1))?;
        let padding = self.number(of, "padding", of.padding, Some(0))?;
        let side = |size: u64| {
            let room = (size + 2 * padding).checked_sub(kernel).ok_or_else(|| {
                self.error(&of.name, format!("its kernel of {kernel} is larger than what it reads, {input}"))
            })?;
            Ok(room / stride + 1)
        };
        Ok(Shape(channels, side(input.1)?, side(input.2)?))
    }

    fn convolution(&self, of: &LayerFile, input: Shape) -> Result<(Shape, u64, u64), Error> {
        let channels = self.number(of, "channels", of.channels, None)?;
        let output = self.slide(of, input, channels)?;
        let kernel = of.kernel.unwrap_or(1);
        let weights = input.0.saturating_mul(channels).saturating_mul(kernel * kernel);
        let bias = if of.bias.unwrap_or(false) { channels } else { 0 };
        let normal = if of.normalised { 2 * channels } else { 0 };
        let places = output.1.saturating_mul(output.2);
        Ok((output, weights.saturating_add(bias + normal), weights.saturating_mul(places)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped(name: &str) -> Model {
        Model::read(name).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The usual figures: the parameters of both, and the multiply-adds of an image of 224 x 224.
    #[test]
    fn totals_are_the_known_ones() {
        let vgg = shipped("vgg16");
        assert_eq!((vgg.parameters(), vgg.multiply_adds()), (138_357_544, 15_470_264_320));
        let resnet = shipped("resnet50");
        assert_eq!((resnet.parameters(), resnet.multiply_adds()), (25_557_032, 3_857_973_248));
        for model in [vgg, resnet] {
            assert!(model.source.contains("arXiv:"), "{}", model.source);
        }
    }

    /// Layer by layer, by hand.
    #[test]
    fn layers_follow_from_their_shapes() {
        let vgg = shipped("vgg16");
        let learns = |model: &Model| model.layers.iter().filter(|layer| layer.parameters > 0).count();
        assert_eq!(learns(&vgg), 16);
        let find = |model: &Model, name: &str| model.layers.iter().find(|layer| layer.name == name).unwrap().clone();
        assert_eq!(find(&vgg, "conv1_1").parameters, 64 * 27 + 64);
        assert_eq!(find(&vgg, "conv5_3").multiply_adds, 512 * 512 * 9 * 14 * 14);
        let fc6 = find(&vgg, "fc6");
        assert_eq!((fc6.input, fc6.parameters), (Shape(512, 7, 7), 102_764_544));
        let resnet = shipped("resnet50");
        // 49 convolutions on the way, 4 projections, and what says which of a thousand it is.
        assert_eq!(learns(&resnet), 54);
        assert_eq!(find(&resnet, "conv1").output, Shape(64, 112, 112));
        assert_eq!(find(&resnet, "conv3_1a").output, Shape(128, 28, 28));
        assert_eq!(find(&resnet, "conv5_3b").parameters, 512 * 512 * 9 + 1024);
        assert_eq!(find(&resnet, "fc").parameters, 2048 * 1000 + 1000);
        assert_eq!(resnet.layers.iter().filter(|layer| layer.reads_image).count(), 1);
    }

    #[test]
    fn wrong_tables_name_the_layer() {
        let table = |layers: &str| {
            let text = format!("name = \"x\"\ninput = [3, 8, 8]\n{layers}");
            Model::parse(Path::new("x.toml"), &text).unwrap_err().to_string()
        };
        let layer = |keys: &str| format!("[[layer]]\nname = \"a\"\n{keys}\n");
        for (layers, words) in [
            (layer("kind = \"dense\""), "layer \"a\": it has no `features`"),
            (layer("kind = \"dense\"\nfeatures = 0"), "its `features` is 0"),
            (layer("kind = \"pool\"\nkernel = 9"), "its kernel of 9 is larger than what it reads, 3 x 8 x 8"),
            (layer("kind = \"average\"\nkernel = 2"), "`kernel` means nothing to a layer of this kind"),
            (layer("kind = \"dense\"\nfeatures = 4\nfrom = \"b\""), "no layer before it has the name \"b\""),
            (layer("kind = \"dance\""), "x.toml:5"),
            (layer("kind = \"dense\"\nfeatures = 4\nfeature = 3"), "unknown field `feature`"),
            (layer("kind = \"dense\"\nfeatures = 4").repeat(2), "another layer has this name"),
            (
                layer("kind = \"convolution\"\nchannels = 3\nkernel = 1")
                    + "[[layer]]\nname = \"b\"\nkind = \"pool\"\nkernel = 2\nadds = \"a\"\n",
                "it adds \"a\" of 3 x 8 x 8, and has 3 x 7 x 7 itself",
            ),
            (
                layer("kind = \"dense\"\nfeatures = 4")
                    + "[[layer]]\nname = \"b\"\nkind = \"dense\"\nfeatures = 2\nfrom = \"a\"\n"
                    + "[[layer]]\nname = \"c\"\nkind = \"dense\"\nfeatures = 2\nfrom = \"a\"\n",
                "layer \"b\": no layer reads it",
            ),
            (String::new(), "layer"),
        ] {
            let error = table(&layers);
            assert!(error.contains(words) && error.contains("x.toml"), "{layers}\n{error}");
        }
        let error = Model::read("vgg19").unwrap_err().to_string();
        assert!(error.contains("vgg16, resnet50, or a file of layers"), "{error}");
    }
}
