import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { tempFolder } from '../support/cli.ts';

/** What a release needs: files that a workflow makes and publishes, and containers that build from a clone. */

const root = join(import.meta.dirname, '..', '..');
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly version: string;
  readonly scripts: Readonly<Record<string, string>>;
};

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}

interface Workflow {
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<
    Record<
      string,
      {
        readonly 'timeout-minutes'?: number;
        readonly permissions?: Readonly<Record<string, string>>;
        readonly strategy?: { readonly matrix: Readonly<Record<string, readonly unknown[]>> };
        readonly environment?: string;
        readonly if?: string;
        readonly steps: readonly Step[];
      }
    >
  >;
}

function workflow(name: string): Workflow {
  return parse(readFileSync(join(root, '.github', 'workflows', name), 'utf8')) as Workflow;
}

const release = (folder: string, ...more: readonly string[]) =>
  spawnSync(process.execPath, ['scripts/release.mjs', '--out', folder, ...more], {
    cwd: root,
    encoding: 'utf8',
  });

describe.each(['ci.yml', 'release.yml'])('the workflow %s', (name) => {
  const { permissions, jobs } = workflow(name);
  const steps = Object.values(jobs).flatMap((job) => job.steps);

  test('names each action by its commit, and reads only', () => {
    expect(permissions).toEqual({ contents: 'read' });
    const used = steps.flatMap(({ uses }) => uses ?? []);
    expect(used.length).toBeGreaterThan(0);
    for (const one of used) expect(one).toMatch(/^actions\/[\w-]+@[\da-f]{40}$/);
    for (const step of steps.filter(({ uses }) => uses?.startsWith('actions/checkout') === true)) {
      expect(step.with).toMatchObject({ 'persist-credentials': false });
    }
  });

  test('runs commands that exist, each job with a limit', () => {
    const commands = steps.flatMap(({ run }) => run ?? []);
    for (const [, script = ''] of commands.join('\n').matchAll(/npm run ([\w:]+)/g)) {
      expect(Object.keys(manifest.scripts)).toContain(script);
    }
    for (const job of Object.values(jobs)) expect(job['timeout-minutes']).toBeLessThanOrEqual(120);
  });
});

test('the tests run on Windows and macOS too', () => {
  const { matrix } = workflow('ci.yml').jobs['others']?.strategy ?? { matrix: {} };
  expect(matrix['os']).toEqual([
    expect.stringMatching(/^macos-/),
    expect.stringMatching(/^windows-/),
  ]);
  expect(matrix['node']).toEqual(['22', '24']);
});

test('only a tag publishes, by the identity of the workflow and behind a reviewer', () => {
  const { build, publish } = workflow('release.yml').jobs;
  expect(publish).toMatchObject({
    if: "github.ref_type == 'tag'",
    environment: 'release',
    permissions: { contents: 'read', 'id-token': 'write' },
  });
  expect(build?.permissions).toBeUndefined();
  const text = readFileSync(join(root, '.github/workflows/release.yml'), 'utf8');
  expect(text).not.toMatch(/NPM_TOKEN|NODE_AUTH_TOKEN|secrets\./);
  const commands = publish?.steps.map(({ run }) => run ?? '').join('\n') ?? '';
  expect(commands).toContain('sha256sum --check SHA256SUMS');
  expect(commands).toContain('--provenance');
});

test(
  'a dry run makes both packages with digests, licences and bills of materials',
  { timeout: 300_000 },
  () => {
    const folder = join(tempFolder(), 'release');
    const made = release(folder);
    expect([made.status, made.stderr]).toEqual([0, '']);
    expect(made.stdout).toContain('Dry run');
    const { version } = manifest;
    const names = ['svc-local-proxy', 'svc-service'];
    const expected = names.flatMap((name) => [
      `${name}-${version}.cdx.json`,
      `${name}-${version}.tgz`,
    ]);
    expect(readdirSync(folder).toSorted()).toEqual(['SHA256SUMS', ...expected].toSorted());
    for (const line of readFileSync(join(folder, 'SHA256SUMS'), 'utf8').trimEnd().split('\n')) {
      const [sum, file = ''] = line.split('  ');
      const bytes = readFileSync(join(folder, file));
      expect(createHash('sha256').update(bytes).digest('hex')).toBe(sum);
    }
    for (const name of names) {
      const bill = JSON.parse(
        readFileSync(join(folder, `${name}-${version}.cdx.json`), 'utf8'),
      ) as {
        readonly bomFormat: string;
        readonly components: readonly { readonly name: string }[];
      };
      expect(bill.bomFormat).toBe('CycloneDX');
      const shipped = bill.components.map((component) => component.name);
      expect(shipped).toContain('commander');
      expect(shipped).not.toContain('vitest');
      const tarball = join(folder, `${name}-${version}.tgz`);
      const read = (file: string) =>
        execFileSync('tar', ['-xOzf', tarball, `package/${file}`], { encoding: 'utf8' });
      for (const one of shipped.filter((own) => own !== '@photostructure/sqlite')) {
        expect(read('dist/THIRD-PARTY-LICENSES.txt')).toContain(`${one} `);
      }
      expect(execFileSync('tar', ['-tzf', tarball], { encoding: 'utf8' })).not.toMatch(
        /metafile|\.map$/m,
      );
    }
  },
);

test('a tag that is not the version is refused, and says why', () => {
  const refused = release(join(tempFolder(), 'release'), '--tag', 'v99.0.0');
  expect(refused.status).toBe(1);
  expect(refused.stderr).toContain(`the version is ${manifest.version}`);
  expect(refused.stderr).not.toContain('    at ');
});

test('the container files name what exists', () => {
  const file = readFileSync(join(root, 'service/Dockerfile'), 'utf8');
  const lines = file
    .replaceAll('\\\n', ' ')
    .split('\n')
    .filter((line) => /^[A-Z]/.test(line));
  const known = /^(?:FROM|WORKDIR|COPY|RUN|USER|ENV|VOLUME|EXPOSE|HEALTHCHECK|ENTRYPOINT|CMD) \S/;
  for (const line of lines) expect(line).toMatch(known);
  for (const line of lines.filter((one) => one.startsWith('FROM')))
    expect(line).toMatch(/^FROM [\w-]+:[\w.-]+/);
  // Behind this line nothing runs as root.
  expect(lines.indexOf('USER node')).toBeLessThan(
    lines.findIndex((line) => line.startsWith('CMD')),
  );
  expect(lines.findLast((line) => line.startsWith('USER'))).toBe('USER node');
  const compose = parse(readFileSync(join(root, 'service/compose.yaml'), 'utf8'), {
    merge: true,
  }) as {
    readonly services: Readonly<
      Record<string, { image: string; depends_on?: readonly string[]; volumes?: readonly string[] }>
    >;
    readonly volumes: Readonly<Record<string, unknown>>;
  };
  const { services, volumes } = compose;
  expect(Object.keys(services)).toEqual(['database', 'limits', 'node-a', 'node-b', 'balancer']);
  for (const service of Object.values(services)) {
    for (const name of service.depends_on ?? []) expect(services).toHaveProperty(name);
    for (const [from = ''] of (service.volumes ?? []).map((volume) => volume.split(':'))) {
      if (!from.startsWith('.')) expect(volumes).toHaveProperty(from);
    }
  }
  expect(services['node-a']).toMatchObject({
    image: 'svc-service',
    depends_on: ['database', 'limits'],
  });
});
