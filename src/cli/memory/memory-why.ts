import { configPath, readConfigFile } from '../../adapters/files/config-file.ts';
import { configFolder } from '../../adapters/files/own-folders.ts';
import { parseRecall } from '../../core/settings/config-schema.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import type { ProxySettings } from '../../core/settings/settings.ts';
import { nameOf, spaceFor } from './named.ts';
import { readStore } from '../store.ts';
import { lookQuestion } from '../../core/memory/captures.ts';
import { shortReference } from '../../core/memory/reference.ts';
import { writeAgentBlock } from '../../core/recall/agent-block.ts';
import type { AgentCandidate, AgentLook } from '../../core/recall/agent-facts.ts';
import { YOUNG, YOUNG_SIGNAL_MIN } from '../../core/recall/running-share.ts';
import { CliError } from '../cli-error.ts';
import { count, percent, timeText } from '../listing.ts';
import { oneLine, type Terminal } from '../terminal.ts';
import { configError } from '../setup/load-config.ts';
import type { Call } from '../context.ts';

/** Runs `svc memory why`: shows which memories recall considers for a prompt, and why it uses each or does not. */

interface WhyOptions {
  readonly space?: string;
  readonly json?: boolean;
}

const TEXT_CHARS = 72;

export async function explainRecall(call: Call<WhyOptions>): Promise<void> {
  const { options, context } = call;
  const [prompt = ''] = call.args;
  const space = await spaceFor(options.space, context);
  const settings = await recallSettings(context.environment);
  const asked = { space, now: Date.now(), settings };
  const question = lookQuestion(prompt, asked);
  const look = await readStore(context, async ({ desk }) => {
    if (desk === undefined) {
      throw new CliError('A memory service does not say why.', 'Ask in the service itself.');
    }
    return desk.look(question);
  });
  const { agent, exchanges } = look;
  const told = { standing: [], exchanges, sessions: [] };
  const { tokensMax } = question;
  const { text: block } = writeAgentBlock(told, { tokensMax, briefTokensMax: 0 });
  const { terminal } = context;
  if (options.json === true) {
    terminal.json({ space, ...agent, block });
    return;
  }
  if (agent === undefined) terminal.note(`Nothing is stored in ${nameOf(space, context)}.`);
  else print(agent, { block, quietShare: question.agent.quietShare }, terminal);
}

/** Returns the settings of recall. Without a configuration returns the defaults, as hooks use them then. */
async function recallSettings(environment: Environment): Promise<ProxySettings> {
  const folder = configFolder(environment);
  const file = await readConfigFile(folder);
  const { proxy, problems } = parseRecall(file?.value ?? {}, environment);
  if (problems.length > 0) throw configError(file?.path ?? configPath(folder), problems);
  return proxy;
}

function print(
  { signal, gate, candidates, ...look }: AgentLook,
  { block, quietShare }: { readonly block: string; readonly quietShare: number },
  terminal: Terminal,
): void {
  const match = `Match ${signal.toFixed(2)}`;
  terminal.out(
    look.prompts < YOUNG && quietShare > 0
      ? `${match}. This project is young: recall speaks from ${YOUNG_SIGNAL_MIN} on.`
      : `${match}: more than ${percent(look.shareBelow)} of the last ${count(look.prompts, 'prompt')} here. ` +
          `As the first prompt of a session it is answered from ${percent(quietShare)} on.`,
  );
  terminal.out(GATES[gate]);
  for (const { ref: whole, at, score, text, verdict } of candidates) {
    const ref = shortReference(whole);
    const isCut = verdict === 'told' && !block.includes(ref);
    const why = isCut ? 'There is no room for it.' : VERDICTS[verdict];
    terminal.out(`${ref}  ${timeText(at)}  ${score.toFixed(2)}  ${why}`);
    terminal.out(`    ${oneLine(text, TEXT_CHARS)}`);
  }
  if (block !== '') terminal.out(`\n${block}`);
}

const GATES: Readonly<Record<AgentLook['gate'], string>> = {
  open: 'Recall speaks.',
  reply:
    'Recall keeps quiet: the prompt names too little to search by, as an answer or an order does.',
  weak: 'Recall keeps quiet: the prompt matches no more than most prompts do.',
};

const VERDICTS: Readonly<Record<AgentCandidate['verdict'], string>> = {
  told: 'It is told.',
  gate: 'Recall keeps quiet.',
  not_whole: 'No whole sentence of it answers or is new.',
  outgrown: 'A newer one speaks of the same files, which have changed.',
  behind: 'Better ones have the places.',
};
