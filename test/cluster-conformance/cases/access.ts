import assert from "node:assert/strict";
import { type ConformanceCase, fromKubernetes } from "../suite/conformance-case.ts";
import { at, type Json, listAt, pick, textAt } from "../suite/json.ts";
import { secretObject } from "../suite/objects.ts";
import type { Stage } from "../suite/stage.ts";

const source = fromKubernetes;

/** Of a discovery document, what is said of the kinds that the product uses. */
function known(...kinds: string[]): (body: Json) => Json {
  return (body) => ({
    ...pick(body, "kind", "apiVersion", "groupVersion"),
    resources: listAt(body, "resources")
      .filter((resource) => kinds.includes(`${at(resource, "name")}`))
      .map((resource) => ({
        ...pick(resource, "name", "singularName", "namespaced", "kind", "shortNames"),
        verbs: [...listAt(resource, "verbs")].sort(),
      }))
      .sort((a, b) => (`${at(a, "name")}` < `${at(b, "name")}` ? -1 : 1)),
  });
}

const review = (stage: Stage, step: string, path: string, kind: string, spec: object, seen: (body: Json) => Json) =>
  stage.call(step, "POST", path, {
    body: { apiVersion: path.split("/").slice(2, 4).join("/"), kind, spec },
    seen,
  });

/** Who may ask, what there is, and what is not. */
export const access: readonly ConformanceCase[] = [
  {
    id: "access/unauthorized",
    title: "a wrong token is 401, whatever is asked",
    source,
    run: async (stage) => {
      const headers = { authorization: "Bearer wrong" };
      for (const path of [stage.path("secrets"), "/version", "/no/such/path"]) {
        const { code } = await stage.call(path, "GET", path, { headers });
        assert.equal(code, 401);
      }
      const post = await stage.call("write", "POST", stage.path("secrets"), { headers, body: secretObject("x") });
      assert.equal(post.code, 401);
    },
  },
  {
    id: "access/not-bearer",
    title: "an authorization of another scheme does not authenticate",
    source,
    run: async (stage) => {
      const headers = { authorization: "Basic eDp5" };
      const { code } = await stage.raw("GET", stage.path("secrets"), { headers });
      assert.ok(code === 401 || code === 403);
    },
  },
  {
    id: "access/anonymous",
    title: "without any authorization nothing is told: 401, or 403 for system:anonymous",
    source,
    run: async (stage) => {
      for (const [method, path] of [
        ["GET", stage.path("secrets")],
        ["GET", stage.path("sandboxes")],
        ["DELETE", stage.path("sandboxes", "x")],
      ] as const) {
        const { code, body } = await stage.raw(method, path, { headers: { authorization: "" } });
        assert.ok(code === 401 || code === 403, `${method} ${path}: ${code}`);
        assert.equal(at(body, "status"), "Failure");
      }
    },
  },
  {
    id: "access/impersonation",
    title: "a caller that asks to be someone else is never served as itself",
    source,
    run: async (stage) => {
      const headers = { "impersonate-user": "conformance-nobody" };
      const { code, body } = await stage.raw("GET", stage.path("secrets"), { headers });
      assert.equal(code, 403);
      assert.equal(at(body, "reason"), "Forbidden");
    },
  },
  {
    id: "access/token-review",
    title: "a token that is not known is reviewed as not authenticated, with 201",
    source,
    run: async (stage) => {
      const path = "/apis/authentication.k8s.io/v1/tokenreviews";
      const { code, body } = await review(stage, "unknown", path, "TokenReview", { token: "wrong" }, (answer) => ({
        ...pick(answer, "kind", "apiVersion", "spec"),
        authenticated: at(answer, "status", "authenticated") ?? false,
        user: at(answer, "status", "user") ?? null,
        hasError: typeof at(answer, "status", "error") === "string",
      }));
      assert.equal(code, 201);
      assert.notEqual(at(body, "status", "authenticated"), true);
      const empty = await stage.call("empty", "POST", path, {
        body: { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec: {} },
      });
      assert.equal(empty.code, 400);
    },
  },
  {
    id: "access/token-review-own",
    title: "the caller's own token is reviewed as authenticated, and its user may do what the caller does",
    source,
    needs: ["token"],
    run: async (stage) => {
      const path = "/apis/authentication.k8s.io/v1/tokenreviews";
      const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec: { token: stage.token } };
      const answer = await stage.do("POST", path, { body });
      assert.equal(at(answer, "status", "authenticated"), true);
      const user = textAt(answer, "status", "user", "username");
      const groups = listAt(answer, "status", "user", "groups");
      assert.ok(groups.includes("system:authenticated"));
      const resourceAttributes = { namespace: stage.namespace, verb: "list", resource: "secrets" };
      const review = {
        apiVersion: "authorization.k8s.io/v1",
        kind: "SubjectAccessReview",
        spec: { user, groups, resourceAttributes },
      };
      const allowed = await stage.do("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", { body: review });
      stage.note("allowed", at(allowed, "status", "allowed") ?? null);
      assert.equal(at(allowed, "status", "allowed"), true);
    },
  },
  {
    id: "access/subject-access-review",
    title: "a user that is not known may do nothing",
    source,
    run: async (stage) => {
      const path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
      const resourceAttributes = { namespace: stage.namespace, verb: "get", resource: "secrets" };
      const spec = { user: "conformance-nobody", resourceAttributes };
      const { code, body } = await review(stage, "nobody", path, "SubjectAccessReview", spec, (answer) => ({
        ...pick(answer, "kind", "apiVersion"),
        allowed: at(answer, "status", "allowed") ?? null,
      }));
      assert.equal(code, 201);
      assert.equal(at(body, "status", "allowed"), false);
      const bad = await stage.call("neither", "POST", path, {
        body: { apiVersion: "authorization.k8s.io/v1", kind: "SubjectAccessReview", spec: { user: "x" } },
        seen: (answer) => pick(answer, "code", "reason"),
      });
      assert.ok(bad.code >= 400);
    },
  },
  {
    id: "access/self-review",
    title: "the caller may ask what it may do itself",
    source,
    run: async (stage) => {
      const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
      const resourceAttributes = {
        namespace: stage.namespace,
        verb: "patch",
        group: "agents.x-k8s.io",
        resource: "sandboxes",
      };
      const { code, body } = await review(
        stage,
        "patch",
        path,
        "SelfSubjectAccessReview",
        { resourceAttributes },
        (answer) => ({
          ...pick(answer, "kind", "apiVersion", "spec"),
          allowed: at(answer, "status", "allowed") ?? null,
        }),
      );
      assert.equal(code, 201);
      assert.equal(at(body, "status", "allowed"), true);
    },
  },
  {
    id: "access/version",
    title: "/version tells major, minor and gitVersion as texts",
    source,
    run: async (stage) => {
      const { code, body } = await stage.raw("GET", "/version");
      assert.equal(code, 200);
      stage.note(
        "members",
        ["major", "minor", "gitVersion", "platform"].map((member) => typeof at(body, member)),
      );
      assert.match(`${at(body, "gitVersion")}`, /^v\d+\.\d+\.\d+/);
    },
  },
  {
    id: "access/health",
    title: "/readyz, /livez and /healthz answer ok",
    source,
    run: async (stage) => {
      for (const path of ["/readyz", "/livez", "/healthz"]) {
        const { code, body } = await stage.call(path, "GET", path);
        assert.equal(code, 200);
        assert.equal(body, "ok");
      }
    },
  },
  {
    id: "access/discovery-core",
    title: "/api and /api/v1 tell the built-in kinds with their verbs",
    source,
    run: async (stage) => {
      const root = await stage.call("versions", "GET", "/api", { seen: (body) => pick(body, "kind", "versions") });
      assert.deepEqual(at(root.body, "versions"), ["v1"]);
      await stage.call("resources", "GET", "/api/v1", {
        seen: known(
          "pods",
          "pods/status",
          "pods/binding",
          "services",
          "persistentvolumeclaims",
          "persistentvolumeclaims/status",
          "secrets",
          "events",
          "namespaces",
          "nodes",
        ),
      });
    },
  },
  {
    id: "access/discovery-groups",
    title: "/apis tells the groups, and each group its preferred version",
    source,
    run: async (stage) => {
      const groups = ["agents.x-k8s.io", "extensions.agents.x-k8s.io", "networking.k8s.io"];
      await stage.call("groups", "GET", "/apis", {
        seen: (body) => ({
          ...pick(body, "kind", "apiVersion"),
          groups: listAt(body, "groups")
            .filter((group) => groups.includes(`${at(group, "name")}`))
            .sort((a, b) => (`${at(a, "name")}` < `${at(b, "name")}` ? -1 : 1)),
        }),
      });
      for (const group of groups) await stage.call(group, "GET", `/apis/${group}`);
    },
  },
  {
    id: "access/discovery-sandboxes",
    title: "the Sandbox groups tell names, short names and the status subresource; there is no scale",
    source,
    run: async (stage) => {
      const { body } = await stage.call("sandboxes", "GET", "/apis/agents.x-k8s.io/v1beta1", {
        seen: known("sandboxes", "sandboxes/status", "sandboxes/scale"),
      });
      assert.ok(!JSON.stringify(body).includes("sandboxes/scale"));
      await stage.call("templates", "GET", "/apis/extensions.agents.x-k8s.io/v1beta1", {
        seen: known("sandboxtemplates", "sandboxtemplates/status"),
      });
    },
  },
  {
    id: "access/unknown-paths",
    title: "paths, groups, versions and kinds that are not served are 404",
    source,
    run: async (stage) => {
      const paths = [
        "/nothing",
        "/api/v9",
        "/apis/none.example.com",
        "/apis/none.example.com/v1",
        "/apis/agents.x-k8s.io/v1alpha1/sandboxes",
        "/apis/agents.x-k8s.io/v1beta1/nothings",
        stage.path("sandboxes", "x", "scale"),
        stage.path("secrets", "x", "status"),
      ];
      for (const [index, path] of paths.entries()) {
        const { code, body } = await stage.raw("GET", path);
        stage.note(`path ${index}`, { code, kind: at(body, "kind") ?? "text", reason: at(body, "reason") ?? null });
        assert.equal(code, 404);
      }
    },
  },
  {
    id: "access/methods",
    title: "methods that a path does not take are 405",
    source,
    run: async (stage) => {
      const collection = stage.path("secrets");
      assert.equal((await stage.call("put collection", "PUT", collection, { body: {} })).code, 405);
      assert.equal(
        (await stage.call("patch collection", "PATCH", collection, { body: {}, type: "application/merge-patch+json" }))
          .code,
        405,
      );
      assert.equal((await stage.call("post object", "POST", stage.path("secrets", "x"), { body: {} })).code, 405);
      const custom = await stage.call("put custom collection", "PUT", stage.path("sandboxes"), { body: {} });
      assert.ok(custom.code >= 400);
    },
  },
  {
    id: "access/post-everywhere",
    title: "a namespaced object cannot be made without a namespace",
    source,
    run: async (stage) => {
      const { code } = await stage.call("post", "POST", "/api/v1/secrets", {
        body: secretObject(stage.name("secret")),
      });
      assert.ok(code >= 400);
    },
  },
  {
    id: "access/openapi",
    title: "/openapi/v3 tells where each group's document is, the Sandbox groups' among them",
    source,
    run: async (stage) => {
      const { body } = await stage.raw("GET", "/openapi/v3");
      const paths = at(typeof body === "string" ? JSON.parse(body) : body, "paths"); // served as plain text
      for (const group of ["apis/agents.x-k8s.io/v1beta1", "apis/extensions.agents.x-k8s.io/v1beta1"]) {
        const url = at(paths, group, "serverRelativeURL");
        assert.ok(typeof url === "string" && url.startsWith("/openapi/v3/"), group);
        const document = await stage.raw("GET", url);
        assert.equal(document.code, 200);
      }
    },
  },
];
