// The language of filters: the expressions of `--where` and of sweep files, with the same errors, over the columns of a page.
const filterOf = (() => {
  const LEVELS = [["or", "||"], ["and", "&&"], ["==", "!=", "<=", ">=", "<", ">"], ["+", "-"], ["*", "/", "%"]];
  const SIGNS = ["&&", "||", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "^", "!", "(", ")", ",", "="];
  const FUNCTIONS = {
    min: [1, 64, Math.min], max: [1, 64, Math.max], abs: [1, 1, Math.abs], ceil: [1, 1, Math.ceil], floor: [1, 1, Math.floor],
    round: [1, 1, (x) => Math.sign(x) * Math.round(Math.abs(x))], sqrt: [1, 1, Math.sqrt], log2: [1, 1, Math.log2], log10: [1, 1, Math.log10],
  };
  const DEEPEST = 64;

  const oneOf = (words) => (words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`);

  const wrongAt = (message, from, to) => Object.assign(new Error(message), { from, to });

  const tokensOf = (text) => {
    const found = [];
    let at = 0;
    const take = (kind, value, end) => { found.push({ kind, value, from: at, to: end }); at = end; };
    while (at < text.length) {
      const rest = text.slice(at);
      const space = rest.match(/^\s+/);
      const number = rest.match(/^(0x[0-9a-fA-F_]*|[0-9][0-9_.]*([eE][+-]?[0-9]*)?)/);
      const name = rest.match(/^[A-Za-z_][A-Za-z0-9_.[\]]*/);
      const sign = SIGNS.find((sign) => rest.startsWith(sign));
      if (space) {
        at += space[0].length;
      } else if (number) {
        const digits = number[0].replaceAll("_", "");
        const right = /^(0x[0-9a-fA-F]+|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)$/.test(digits);
        if (!right) throw wrongAt("this is no number", at, at + number[0].length);
        take("number", Number(digits), at + number[0].length);
      } else if (rest[0] === "'" || rest[0] === '"') {
        const end = rest.indexOf(rest[0], 1);
        if (end < 0) throw wrongAt("the word has no closing quote", at, text.length);
        take("word", rest.slice(1, end), at + end + 1);
      } else if (name) {
        take("name", name[0].replaceAll("[", ".").replaceAll("]", ""), at + name[0].length);
      } else if (sign) {
        take("sign", sign, at + sign.length);
      } else {
        throw wrongAt("this sign means nothing here", at, at + [...rest][0].length);
      }
    }
    return found;
  };

  /** Reads an expression into a tree; `units` are words that people write behind numbers. */
  const treeOf = (text, units) => {
    const tokens = tokensOf(text);
    let at = 0;
    let depth = 0;
    const fail = (message) => {
      const token = tokens[at];
      throw wrongAt(message, token ? token.from : text.length, token ? token.to : text.length);
    };
    const take = (signs) => {
      const token = tokens[at];
      if (!token || token.kind === "number" || token.kind === "word" || !signs.includes(token.value)) return null;
      at += 1;
      return token.value;
    };
    const deeper = (read) => {
      depth += 1;
      if (depth > DEEPEST) fail("this is nested too deeply");
      const inner = read();
      depth -= 1;
      return inner;
    };
    const level = (number) => {
      if (number === LEVELS.length) return unary();
      if (number === 2 && take(["not", "!"])) return { op: "not", of: [deeper(() => level(2))] };
      let left = level(number + 1);
      for (let op = take(LEVELS[number]); op; op = take(LEVELS[number])) {
        left = { op: { "||": "or", "&&": "and" }[op] ?? op, of: [left, level(number + 1)] };
      }
      return left;
    };
    const unary = () => {
      if (take(["-"])) return { op: "negative", of: [deeper(unary)] };
      const base = atom();
      return take(["^"]) ? { op: "^", of: [base, deeper(unary)] } : base;
    };
    const atom = () => {
      const token = tokens[at];
      if (!token) return fail("a value is missing here");
      if (token.kind === "number" || token.kind === "word") {
        at += 1;
        return { value: token.value };
      }
      if (token.kind === "sign") {
        if (token.value !== "(") return fail(token.value === "=" ? "equality is written `==`" : "a value is missing here");
        at += 1;
        const inner = deeper(() => level(0));
        return take([")"]) ? inner : fail("a `)` is missing here");
      }
      if (["and", "or", "not"].includes(token.value)) return fail("a value is missing here");
      at += 1;
      if (token.value === "true" || token.value === "false") return { value: token.value === "true" };
      return take(["("]) ? call(token.value) : { name: token.value };
    };
    const call = (name) => {
      if (!Object.hasOwn(FUNCTIONS, name)) {
        at -= 2;
        return fail(`there is no function \`${name}\`, but ${oneOf(Object.keys(FUNCTIONS))}`);
      }
      const [least, most] = FUNCTIONS[name];
      const operands = deeper(() => {
        const list = [];
        if (take([")"])) return list;
        for (;;) {
          list.push(level(0));
          if (take([")"])) return list;
          if (!take([","])) fail("a `,` or `)` is missing here");
        }
      });
      if (operands.length < least || operands.length > most) {
        at -= 1;
        return fail(`\`${name}\` takes another number of values`);
      }
      return { call: name, of: operands };
    };
    const tree = level(0);
    const token = tokens[at];
    if (!token) return tree;
    const unit = token.kind === "name" && units.includes(token.value.toLowerCase());
    if (unit && at > 0 && tokens[at - 1].kind === "number") {
      return fail("numbers have no units here: the end of a name says its unit, latency_ns is in ns");
    }
    return fail(token.value === "=" && token.kind === "sign" ? "`==` compares; a single `=` means nothing here" : "the expression should end here");
  };

  const numberOf = (value) => (typeof value === "number" ? value : typeof value === "boolean" ? Number(value) : undefined);
  const holds = (value) => (typeof value === "number" ? value !== 0 : typeof value === "string" ? value !== "" : value);
  const finite = (value) => (Number.isFinite(value) ? value : undefined);

  /** The value of a tree; what reads a name without a value has none. */
  const valueOf = (tree, read) => {
    if ("value" in tree) return tree.value;
    if ("name" in tree) return read(tree.name);
    const [a, b] = tree.of;
    if (tree.call) {
      const values = tree.of.map((operand) => numberOf(valueOf(operand, read)));
      return values.includes(undefined) ? undefined : finite(FUNCTIONS[tree.call][2](...values));
    }
    const left = valueOf(a, read);
    if (tree.op === "or") {
      if (left !== undefined && holds(left)) return true;
      const right = valueOf(b, read);
      return right === undefined ? undefined : holds(right);
    }
    if (left === undefined) return undefined;
    if (tree.op === "not") return !holds(left);
    if (tree.op === "and" && !holds(left)) return false;
    const right = b && valueOf(b, read);
    if (b && right === undefined) return undefined;
    if (tree.op === "and") return holds(right);
    const [x, y] = [numberOf(left), numberOf(right)];
    if (tree.op === "==" || tree.op === "!=") {
      const same = x !== undefined && y !== undefined ? x === y : left === right;
      return same === (tree.op === "==");
    }
    if (x === undefined || (b && y === undefined)) return undefined;
    switch (tree.op) {
      case "negative": return -x;
      case "<": return x < y;
      case "<=": return x <= y;
      case ">": return x > y;
      case ">=": return x >= y;
      case "+": return finite(x + y);
      case "-": return finite(x - y);
      case "*": return finite(x * y);
      case "/": return finite(x / y);
      case "%": return finite(x % y);
      default: return finite(x ** y);
    }
  };

  /** The name that a wrong one may be a slip of. */
  const nearestName = (given, names) => {
    const fold = (name) => name.toLowerCase().replace(/[_\- ]/g, "");
    const wanted = fold(given);
    const apart = (a, b) => {
      let line = Array.from({ length: b.length + 1 }, (_, at) => at);
      for (let i = 1; i <= a.length; i += 1) {
        const next = [i];
        for (let j = 1; j <= b.length; j += 1) next[j] = Math.min(line[j] + 1, next[j - 1] + 1, line[j - 1] + (a[i - 1] !== b[j - 1]));
        line = next;
      }
      return line[b.length];
    };
    let [best, least] = [null, Infinity];
    for (const name of names) {
      const other = fold(name);
      const begins = wanted.length >= 3 && other.startsWith(wanted);
      const cost = other === wanted ? 0 : begins ? 1 : apart(wanted, other);
      const near = begins || cost === 0 || (other[0] === wanted[0] && cost <= Math.max(other.length, wanted.length) / 3);
      if (near && cost < least) [best, least] = [name, cost];
    }
    return best;
  };

  /** A test of a row. `columns` has for each name the values that it can read; a wrong text throws what is wrong with it. */
  const filterOf = (text, columns, units) => {
    let tree;
    try {
      tree = treeOf(text, units);
    } catch (error) {
      if (error.from === undefined) throw error;
      throw new Error(`at \`${text.slice(error.from, error.to) || "the end"}\`: ${error.message}`);
    }
    const known = new Map(columns.map((column) => [column.name, column.values]));
    const words = (name) => [...new Set((known.get(name) ?? []).filter((value) => typeof value === "string"))];
    // A name that no column has is a word where it is compared with what has such a value.
    const spell = (node) => {
      if (!node.of) return node;
      const [a, b] = node.of;
      const side = (one, other) => {
        const word = one.name !== undefined && other.name !== undefined && !known.has(one.name) && words(other.name).includes(one.name);
        return word ? { value: one.name } : spell(one);
      };
      const pair = node.op === "==" || node.op === "!=";
      return { ...node, of: pair ? [side(a, b), side(b, a)] : node.of.map(spell) };
    };
    tree = spell(tree);
    const names = (node) => (node.name !== undefined ? [node.name] : (node.of ?? []).flatMap(names));
    const unknown = names(tree).find((name) => !known.has(name));
    if (unknown !== undefined) {
      const near = nearestName(unknown, [...known.keys()]);
      const beside = names(tree).filter((name) => words(name).length).map((name) => (
        `; the values of \`${name}\` are words, which stand in quotes: ${words(name).slice(0, 4).map((word) => `\`${name} == '${word}'\``).join(", ")}`));
      throw new Error(`\`${unknown}\` is neither an axis nor a column${near ? `; did you mean \`${near}\`?` : ""}${[...new Set(beside)].join("")}`);
    }
    const read = (row) => (name) => {
      const value = known.get(name)[row];
      if (value === "true" || value === "false") return value === "true";
      return value ?? undefined;
    };
    return (row) => {
      const value = valueOf(tree, read(row));
      return value !== undefined && holds(value);
    };
  };
  return filterOf;
})();
