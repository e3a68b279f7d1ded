// Authenticates requests by a JSON Web Token whose issuer has a *.provider file. The refusals are those
// of the replicator.

import { createHmac, createPublicKey, timingSafeEqual, verify } from "node:crypto";
import { readFileSync } from "node:fs";

import { files } from "./policies.mjs";

const HMACS = { HS256: "sha256", HS384: "sha384", HS512: "sha512" };

export function authenticate(directory) {
  const providers = files(directory, ".provider").map((file) => JSON.parse(readFileSync(file, "utf8")));
  const allowsAnonymous = files(directory, "allow-anonymous").length > 0;
  return (request, response, next) => {
    const bearer = /^Bearer (.*)$/.exec(request.headers.authorization ?? "");
    if (request.method === "OPTIONS" || (!bearer && allowsAnonymous)) {
      next();
      return;
    }
    try {
      request.user = user(bearer?.[1], providers);
      next();
    } catch (error) {
      response.set("Access-Control-Allow-Origin", "*").status(401).send(error.message);
    }
  };
}

function user(token, providers) {
  if (!token) {
    throw new Error("No token");
  }
  const [header, payload, signature] = token.split(".");
  const { kid, alg } = decoded(header);
  const { sub, iss, aud, exp, display_name } = decoded(payload);
  if (!sub) {
    throw new Error("Invalid subject");
  }
  const ofIssuer = providers.filter((provider) => provider.issuer === iss);
  if (ofIssuer.length === 0) {
    throw new Error("Invalid issuer");
  }
  const provider = ofIssuer.find((one) => one.audience === aud && one.key_id === kid);
  if (!provider) {
    throw new Error("Invalid audience");
  }
  if (!isSigned(`${header}.${payload}`, signature, alg, provider.key) || (exp && exp * 1000 < Date.now())) {
    throw new Error("Invalid signature");
  }
  return { provider: provider.provider, id: sub, profile: { displayName: display_name ?? "" } };
}

function decoded(part) {
  try {
    return JSON.parse(Buffer.from(part, "base64url").toString());
  } catch {
    throw new Error("Invalid token");
  }
}

function isSigned(text, signature, alg, key) {
  const given = Buffer.from(signature ?? "", "base64url");
  // A PEM key is public: used as a shared secret, it would let anybody sign.
  if (key.startsWith("-----BEGIN")) {
    return alg === "RS256" && verify("sha256", Buffer.from(text), createPublicKey(key), given);
  }
  if (!HMACS[alg]) {
    return false;
  }
  const right = createHmac(HMACS[alg], key).update(text).digest();
  return right.length === given.length && timingSafeEqual(right, given);
}
