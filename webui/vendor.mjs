// Fetches the few libraries the console uses and writes them to vendor/.
//
// Why a script and not a bundler: the console has no build step, and the Content-Security-Policy forbids inline import
// maps, so the only thing a bundler would do for us is to turn `from "preact"` into a path. That is what this does.
// Run it by hand when a version changes: `node webui/vendor.mjs` (needs npm and the registry; nothing else does).

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const VERSIONS = {
  preact: "11.2.0",
  htm: "3.1.1",
  "@preact/signals": "2.11.4",
  "@preact/signals-core": "1.14.5",
  marked: "18.2.1",
  "@fontsource-variable/inter": "5.3.0",
  "@fontsource-variable/jetbrains-mono": "5.3.0",
};

/** [package, file in it, file in vendor/] */
const MODULES = [
  ["preact", "dist/preact.mjs", "preact.js"],
  ["preact", "hooks/dist/hooks.mjs", "preact-hooks.js"],
  ["htm", "dist/htm.mjs", "htm.js"],
  ["@preact/signals-core", "dist/signals-core.mjs", "signals-core.js"],
  ["@preact/signals", "dist/signals.mjs", "signals.js"],
  ["marked", "lib/marked.esm.js", "marked.js"],
];

const FONTS = ["inter", "jetbrains-mono"].flatMap((font) =>
  ["latin", "latin-ext", "cyrillic"].map((subset) => {
    const name = `${font}-${subset}-wght-normal.woff2`;
    return [`@fontsource-variable/${font}`, `files/${name}`, `fonts/${name}`];
  }),
);

/** Bare import → path beside the importing file. */
const PATHS = {
  preact: "./preact.js",
  "preact/hooks": "./preact-hooks.js",
  "@preact/signals-core": "./signals-core.js",
};

const target = join(dirname(fileURLToPath(import.meta.url)), "vendor");
const work = mkdtempSync(join(tmpdir(), "ducklm-vendor-"));
const read = (name, file) => readFileSync(join(work, "node_modules", name, file));

function relinked(source) {
  return source
    .replace(/\b(from\s*)"([^"./][^"]*)"/g, (whole, from, name) => (PATHS[name] ? `${from}"${PATHS[name]}"` : whole))
    .replace(/\n?\/\/# sourceMappingURL=.*\s*$/, "\n");
}

function install() {
  const wanted = Object.entries(VERSIONS).map(([name, version]) => `${name}@${version}`);
  writeFileSync(join(work, "package.json"), "{}");
  execFileSync("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", ...wanted], { cwd: work, stdio: "inherit" });
}

function write() {
  const rows = [];
  mkdirSync(join(target, "fonts"), { recursive: true });
  for (const [name, from, to] of [...MODULES, ...FONTS]) {
    const { license } = JSON.parse(read(name, "package.json"));
    const body = to.endsWith(".js")
      ? Buffer.from(`/* ${name} ${VERSIONS[name]}, ${license}: see LICENSES.txt. Written by ../vendor.mjs */\n${relinked(read(name, from).toString())}`)
      : read(name, from);
    writeFileSync(join(target, to), body);
    const sha = createHash("sha256").update(body).digest("hex").slice(0, 16);
    rows.push(`| ${to} | ${name} ${VERSIONS[name]} | \`${from}\` | ${license} | ${sha}… |`);
  }
  const licences = Object.keys(VERSIONS).map((name) => `${name}\n${"=".repeat(name.length)}\n\n${read(name, "LICENSE")}`);
  writeFileSync(join(target, "LICENSES.txt"), licences.join("\n\n"));
  writeFileSync(join(target, "README.md"), readme(rows));
}

const readme = (rows) => `# Vendored libraries

Written by \`node webui/vendor.mjs\`; do not edit by hand. The files are the packages' own published ES modules; the only
changes are a first line that names them, bare imports turned into relative paths (the Content-Security-Policy allows no
inline import map) and no source map reference. Licences in full: [LICENSES.txt](LICENSES.txt).

| file | package | made from | licence | sha256 |
|---|---|---|---|---|
${rows.join("\n")}
`;

try {
  install();
  write();
} finally {
  rmSync(work, { recursive: true });
}
