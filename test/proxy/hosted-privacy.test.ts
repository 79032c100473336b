import { expect, onTestFinished, test } from 'vitest';
import { DIALECTS } from '../support/dialect-wire.ts';
import { openHostedScene } from '../support/hosted.ts';
import { TOKEN } from '../support/local-server.ts';
import { openProxyStage } from '../support/proxy-stage.ts';
import { plantSecrets } from '../support/planted-secrets.ts';
import { pause } from '../support/sockets.ts';
import { longOutput, sessionBody } from '../support/tool-session.ts';

// What leaves for the memory service is built member by member from the contract's types. This
// plants what must not leave everywhere that a client can put it, and looks at every byte sent.

test.each(DIALECTS)(
  'R26, R29: %s: no key, header, token, system prompt, argument or secret reaches the service',
  async (dialect) => {
    const { service, hosted, folder } = await openHostedScene();
    const stage = await openProxyStage({
      folder,
      settings: { recallMs: 10_000 },
      wrap: () => hosted.memory,
      outbox: () => hosted.outbox,
    });
    onTestFinished(() => stage.stop());
    const secrets = plantSecrets(7);
    const rounds = Array.from({ length: 10 }, (_, at) => ({
      id: `call_CANARY_id_${at}`,
      tool: 'Bash',
      args: { command: `echo CANARY-argument-${at}` },
      // Every third output has a secret in it.
      output: `${longOutput(`r${at}`, 900)}\n${at % 3 === 0 ? (secrets[at]?.line ?? '') : ''}`,
    }));
    const prompt = `Deploy the walrus service. ${secrets.map(({ line }) => line).join('\n')} <private>CANARY-private</private>`;
    const body = {
      ...sessionBody(dialect, rounds, prompt),
      metadata: { user_id: 'CANARY-metadata' },
      ...(dialect === 'anthropic_messages' ? { system: 'CANARY-system' } : {}),
      ...(dialect === 'openai_responses' ? { instructions: 'CANARY-system' } : {}),
    };
    const headers = ['x-extra', 'CANARY-header', 'cookie', 'CANARY-cookie', 'x-api-key', TOKEN];
    for (const ahead of [0, 301_000, 602_000]) {
      stage.setClockAhead(ahead);
      // oxlint-disable no-await-in-loop -- A client waits for each answer.
      await stage.send(dialect, body, headers.slice(0, 4));
      await pause(300);
      // oxlint-enable no-await-in-loop
    }
    await hosted.outbox.flush(30_000);
    const paths = new Set(service.seen.map(({ path }) => path.split('/').at(-1)));
    expect(paths).toEqual(new Set(['capture', 'recall']));
    const sent = service.seen.map(({ path, query, headers: sentHeaders, body: sentBody }) =>
      [path, query.toString(), ...sentHeaders, sentBody].join('\n'),
    );
    const all = sent.join('\n').replaceAll(`Bearer ${service.key}`, '');
    expect(all).toContain('walrus');
    expect(all).toContain('r1 line 3 of the parser module');
    expect(all).not.toMatch(/CANARY/);
    expect(all).not.toContain(TOKEN);
    expect(all).not.toContain('test-key');
    expect(all).not.toContain('test-model');
    for (const { name, secret } of secrets) {
      expect([name, all.includes(secret)]).toEqual([name, false]);
    }
    // Closed: a member that the document does not name would have been refused.
    expect(service.invalid).toEqual([]);
  },
);
