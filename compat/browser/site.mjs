// The web server of pages that are not Wakeline's. It answers by any name that the browser resolves
// to this machine.

import { createServer } from "node:http";

export class Site {
  #server;

  static async open() {
    const server = createServer((request, response) => {
      const { pathname, searchParams } = new URL(request.url, "http://site");
      // The method and the body are kept: a page's own origin sends the browser to the server.
      if (pathname === "/redirect") {
        response.writeHead(307, { location: searchParams.get("to"), "access-control-allow-origin": "*" }).end();
        return;
      }
      response.setHeader("content-type", "text/html");
      // Nothing that the page could leave out may stop a request before it reaches the server.
      response.setHeader("referrer-policy", "unsafe-url");
      response.end("<!doctype html><title>a page</title>");
    });
    await new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(0, "127.0.0.1", resolve);
    });
    return new Site(server);
  }

  constructor(server) {
    this.#server = server;
  }

  /** The origin of its pages by this name. */
  origin(name) {
    return `http://${name}:${this.#server.address().port}`;
  }

  async close() {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
