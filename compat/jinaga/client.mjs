// The real client, as an application in a browser without IndexedDB has it.

import { token } from "./rules.mjs";

let jinaga;

export function loadClient(require) {
  jinaga = require("jinaga");
}

/** The package's exports. */
export function library() {
  return jinaga;
}

/** `user` signs in by a token; `refresh` is the seconds after which streams are opened again. */
export function connect(url, { user, refresh } = {}) {
  const authorization = user && `Bearer ${token(user)}`;
  const client = jinaga.JinagaBrowser.create({
    httpEndpoint: url,
    feedRefreshIntervalSeconds: refresh,
    httpAuthenticationProvider: user && {
      getHeaders: async () => ({ Authorization: authorization }),
      reauthenticate: async () => false,
    },
  });
  return new Client(client);
}

class Client {
  #observers = [];

  constructor(client) {
    this.j = client;
    this.diagnostics = [];
    client.onDistributionDiagnostic((diagnostic) => this.diagnostics.push(diagnostic));
  }

  fact(prototype) {
    return this.j.fact(prototype);
  }

  /** One after another, as an application awaits them. */
  async facts(...prototypes) {
    const saved = [];
    for (const prototype of prototypes) {
      saved.push(await this.j.fact(prototype));
    }
    return saved;
  }

  query(specification, ...given) {
    return this.j.query(specification, ...given);
  }

  async login() {
    return (await this.j.login()).userFact;
  }

  /** The results as they come, and those that went away again taken out. */
  subscribe(specification, ...given) {
    const results = [];
    const observer = this.j.subscribe(specification, ...given, (result) => {
      results.push(result);
      return () => {
        results.splice(results.indexOf(result), 1);
      };
    });
    this.#observers.push(observer);
    return { results, loaded: () => observer.loaded(), stop: () => observer.stop(), observer };
  }

  /** With the caller's own handlers. */
  observe(specification, ...given) {
    const observer = this.j.subscribe(specification, ...given);
    this.#observers.push(observer);
    return observer;
  }

  stop() {
    for (const observer of this.#observers) {
      observer.stop();
    }
  }
}
