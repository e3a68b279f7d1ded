// What a page does. Each function runs in the page, with the rights of its origin.

/** What the page gets to see: an answer, or that there is none for it. */
export function request(page, url, options = {}) {
  return page.evaluate(async ([url, options]) => {
    try {
      const answer = await fetch(url, options);
      const headers = Object.fromEntries(answer.headers);
      return { type: answer.type, status: answer.status, headers, text: await answer.text() };
    } catch (error) {
      return { failed: String(error) };
    }
  }, [url, options]);
}

/** An element with this attribute, which makes the browser load a URL. */
export function load(page, tag, attributes) {
  return page.evaluate(([tag, attributes]) => {
    document.body.append(Object.assign(document.createElement(tag), attributes));
  }, [tag, attributes]);
}

/** A form that is sent as text/plain: its body is `name=value`. */
export function submit(page, action, [name, value], target = "_self") {
  return page.evaluate(([action, name, value, target]) => {
    const frame = Object.assign(document.createElement("iframe"), { name: "hidden" });
    const form = Object.assign(document.createElement("form"), { action, method: "post", enctype: "text/plain", target });
    form.append(Object.assign(document.createElement("input"), { type: "hidden", name, value }));
    document.body.append(frame, form);
    // Not at once: the page would be gone before this function has returned.
    setTimeout(() => form.submit());
  }, [action, name, value, target]);
}

/** The first thing that a WebSocket says about itself: `open` or `error`. */
export function webSocket(page, url) {
  return page.evaluate((url) => new Promise((resolve) => {
    const socket = new WebSocket(url);
    socket.onopen = () => resolve("open");
    socket.onerror = () => resolve("error");
  }), url);
}

/** Follows a link on the page. The answer to the navigation. */
export async function follow(page, url) {
  await load(page, "a", { href: url, textContent: "a link" });
  const [answer] = await Promise.all([
    page.waitForResponse((response) => response.url() === url),
    page.getByText("a link").click({ noWaitAfter: true }),
  ]);
  return answer;
}
