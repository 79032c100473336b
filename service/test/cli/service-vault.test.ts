import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCli, runServiceHere } from '../../../test/support/cli.ts';
import { callService } from '../support/memory-service.ts';
import { makeServiceKey, runService, tempHomeWithService } from '../support/service-process.ts';

const FOLDER = '.local/share/svc/service';

test(
  'the vault of a new service opens, is rotated to another master key, and a wrong one stops a start',
  { timeout: 120_000 },
  async () => {
    const home = await tempHomeWithService();
    const run = (...args: string[]) => runServiceHere(args, { home });
    const status = await run('vault', 'status', '--json');
    const [{ key_id: first }] = JSON.parse(status.stdout).keys;
    const path = join(home, '.config/svc', `service-${first}.key`);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const settings = readFileSync(join(home, FOLDER, 'service.json'), 'utf8');
    expect(JSON.parse(settings).vault.keys).toEqual([{ id: first, from: `file:${path}` }]);
    expect((await run('vault', 'add')).code).toBe(0);
    expect((await run('vault', 'rotate')).stderr).toContain('1 secret is encrypted with');
    expect((await run('vault', 'verify')).code).toBe(0);
    expect((await run('vault', 'retire', first)).code).toBe(0);
    const wrong = await run('vault', 'add', '--from', 'env:NOWHERE');
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('cannot be read')]);
    expect(JSON.parse((await run('vault', 'status', '--json')).stdout).keys).toHaveLength(2);
    const [{ key_id: active }] = JSON.parse(
      (await run('vault', 'status', '--json')).stdout,
    ).keys.filter((key: { state: string }) => key.state === 'active');
    writeFileSync(join(home, '.config/svc', `service-${active}.key`), 'f'.repeat(64));
    await expect(runService(home)).rejects.toThrow('does not fit the vault');
    expect((await run('vault', 'verify')).code).toBe(1);
    expect((await run('vault', 'status')).code).toBe(1);
    const doctor = await run('doctor', '--json');
    expect(JSON.parse(doctor.stdout).checks).toContainEqual(
      expect.objectContaining({ subject: 'Vault', level: 'problem' }),
    );
    expect((await runCli(['uninstall', '--yes'], { home })).code).toBe(0);
    expect([existsSync(path), existsSync(join(home, FOLDER))]).toEqual([true, true]);
  },
);

test(
  'a receipt of a purge is verified from files, and an altered one is found',
  { timeout: 120_000 },
  async () => {
    const home = await tempHomeWithService();
    const key = await makeServiceKey(home, '--scopes', 'read,write,receipt:read');
    const service = await runService(home);
    const order = { space: 'a', scope: { all: true }, confirm: 'a' };
    await callService(service.url, '/v1/svc/memory/purges', { key, body: order });
    const list = await callService(service.url, '/v1/svc/memory/purges', { key });
    const keys = await callService(service.url, '/.well-known/svc/receipt-keys.json');
    const [receipts, altered, known] = ['r.json', 'a.json', 'k.json'].map((name) =>
      join(home, name),
    );
    writeFileSync(receipts ?? '', list.text);
    writeFileSync(altered ?? '', list.text.replace('"space":"a"', '"space":"b"'));
    writeFileSync(known ?? '', keys.text);
    const verify = (file = '') =>
      runServiceHere(['receipts', 'verify', file, '--keys', known ?? ''], { home });
    const good = await verify(receipts);
    expect([good.code, good.stderr]).toEqual([0, expect.stringContaining('1 receipt, 0 wrong')]);
    const bad = await verify(altered);
    expect([bad.code, bad.stdout]).toEqual([
      1,
      expect.stringContaining('differs from the signed receipt'),
    ]);
    expect((await verify('/nowhere')).code).toBe(2);
  },
);
