import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { LOCAL_TOKEN, validConfig } from './config.ts';
import { homeWith } from './home.ts';
import { type ServerProcess, startServerProcess } from './proxy-process.ts';
import { type ScriptedProvider, startScriptedProvider } from './scripted-provider/provider.ts';
import { type Round, sessionBody } from './tool-session.ts';
import { freePort } from './free-port.ts';

/** A real proxy with a recording provider behind it, and an agent that talks through it. */
export interface PageStage {
  readonly home: string;
  readonly proxy: ServerProcess;
  readonly provider: ScriptedProvider;
  /** One prompt of a session, as Claude Code sends it. Resolves to the state headers. */
  say(asked: AgentPrompt): Promise<Headers>;
  /** Asks in new sessions until memory says something: what was said a moment ago is still on its way. */
  sayRecalled(prompt: string): Promise<{ readonly session: string; readonly headers: Headers }>;
}

export interface AgentPrompt {
  readonly session: string;
  readonly prompt: string;
  readonly rounds?: readonly Round[];
  readonly space?: string;
  /** Rounds before it. */
  readonly earlier?: readonly { readonly prompt: string; readonly answer: string }[];
}

export async function startPageStage(
  change: Readonly<Record<string, unknown>> = {},
): Promise<PageStage> {
  const provider = await startScriptedProvider({
    usageOf: () => ({ input: 100, cacheRead: 900, cacheWrite: 50 }),
  });
  onTestFinished(() => provider.stop());
  const port = await freePort();
  const config = {
    ...validConfig(),
    upstreams: [
      {
        name: 'story',
        apiStyle: 'anthropic_messages',
        baseUrl: provider.url,
        providerKey: 'provider-key-CANARY-77aa',
        auth: 'x-api-key',
        allowPrivate: true,
      },
    ],
    ...change,
    // A machine that is busy with other tests is no failure.
    proxy: {
      port,
      recallQuietPercent: 0,
      recallMs: 5000,
      ...(change['proxy'] as object | undefined),
    },
  };
  const home = homeWith(config);
  const proxy = await startServerProcess(['start', '--json'], { HOME: home });
  const say = async (asked: AgentPrompt): Promise<Headers> => {
    const answer = await fetch(`${proxy.url}/v1/messages`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-api-key': LOCAL_TOKEN,
        'user-agent': 'claude-cli/2.0.44 (external, cli)',
        'x-claude-code-session-id': asked.session,
        'x-svc-memory-space': asked.space ?? 'tidewater',
      },
      body: JSON.stringify(bodyOf(asked)),
    });
    await answer.text();
    return answer.headers;
  };
  const sayRecalled: PageStage['sayRecalled'] = async (prompt) => {
    for (let time = 0; time < 50; time += 1) {
      const session = `asks-${time}`;
      const headers = await say({ session, prompt });
      if (headers.get('x-svc-memory-state') === 'recalled') return { session, headers };
      await sleep(200);
    }
    throw new Error('The memory never said anything.');
  };
  return { home, proxy, provider, say, sayRecalled };
}

function bodyOf({ prompt, rounds = [], earlier = [] }: AgentPrompt): object {
  const body = sessionBody('anthropic_messages', rounds, prompt) as { messages: unknown[] };
  const before = earlier.flatMap((one) => [
    { role: 'user', content: one.prompt },
    { role: 'assistant', content: one.answer },
  ]);
  return { ...body, model: 'claude-sonnet-4-5', messages: [...before, ...body.messages] };
}
