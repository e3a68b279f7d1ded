// Graphs as text, for loads that the client would make one request for each fact of.

const text = (value) => JSON.stringify(value);

/** A root, and `count` items of it that each have a tail of `depth` more. */
export function items(root, count, depth = 0) {
  const lines = [text("Load.Root"), "{}", text({ root }), ""];
  let index = 0;
  for (let number = 0; number < count; number += 1) {
    lines.push(text("Load.Item"), text({ root: 0 }), text({ number }), "");
    index += 1;
    for (let level = 1; level <= depth; level += 1) {
      lines.push(text(`Load.Tail${level}`), text({ above: index }), text({ number }), "");
      index += 1;
    }
  }
  return `${lines.join("\n")}\n`;
}

/** A chain of facts, each the predecessor of the next. */
export function chain(root, length) {
  const lines = [text("Load.Root"), "{}", text({ root }), ""];
  for (let number = 1; number < length; number += 1) {
    lines.push(text(number === 1 ? "Load.First" : "Load.Link"), text({ prior: number - 1 }), text({ number }), "");
  }
  return `${lines.join("\n")}\n`;
}
