// Requests byte for byte: no header that is not given, which `fetch` does not allow.

import http from "node:http";

/** `path` is below the door's prefix. */
export function send(url, { method = "GET", path, headers = {}, body }) {
  return new Promise((resolve, reject) => {
    const request = open(url, { method, path, headers, body }, (response) => {
      const chunks = [];
      response.on("data", (chunk) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        resolve({ status: response.statusCode, headers: response.headers, body: text });
      });
    });
    request.on("error", reject);
  });
}

export function post(url, path, contentType, body, headers = {}) {
  return send(url, { method: "POST", path, headers: { "content-type": contentType, ...headers }, body });
}

/** The request is on its way; the answer goes to `answered`. */
export function open(url, { method = "GET", path, headers = {}, body }, answered) {
  const request = http.request(url + path, { method, headers: { ...headers, ...length(body) } }, answered);
  request.end(body);
  return request;
}

function length(body) {
  return body === undefined ? {} : { "content-length": Buffer.byteLength(body) };
}
