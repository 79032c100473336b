import { type ConfigFile, configPath, readConfigFile } from '../../adapters/files/config-file.ts';
import { configFolder } from '../../adapters/files/own-folders.ts';
import {
  type Draft,
  newDraft,
  putProxySettings,
  putUpstream,
  removeUpstreams,
  upstreamNames,
} from '../../core/settings/config-draft.ts';
import { previewLines, askClients, clientTitles, listText, wireClients } from './wizard-clients.ts';
import { LOGIN_STYLES } from '../../core/settings/config-upstreams.ts';
import { isRecord } from '../../core/bytes/json-fields.ts';
import type { ExitCode } from '../cli-error.ts';
import type { CommandContext } from '../context.ts';
import { type Changes, noteNext, refuseUnusable, saveConfig } from './setup-save.ts';
import { looseText } from '../doctor/checks.ts';
import { fixModes, looseModes } from '../doctor/doctor-config.ts';
import { importTranscripts, type SessionSurvey, surveySessions } from '../memory/memory-import.ts';
import { askMemory, askAddress, askBusyPort, askCacheTtl, askModes } from './wizard-settings.ts';
import {
  type Answers,
  type WizardDependencies,
  storedSettings,
  summaryOf,
} from './wizard-answers.ts';
import { askUpstreams, type Provided } from './wizard-upstream.ts';
import { Prompts } from './wizard-prompts.ts';
import type { TranscriptClient } from '../../core/memory/transcript-forms.ts';
import { count } from '../listing.ts';

/** A note for the user before the first session, because it would come too late when svc is stopped. */
const BOUND_NOTE =
  'With the newest models svc adds memory and shortens nothing, and a conversation with such a memory cannot continue without svc. Which models these are: svc help modes';

/**
 * Runs `svc setup` on a terminal. The first time it asks for a provider, the place of memories, which clients will use
 * svc, whether earlier sessions become memories, and, where that matters, about the cache and the port; later, what to
 * change. Nothing lasting is written before the user confirms at the end, apart from a repair of file modes. A typed
 * key is tested before it is saved, and only its end is shown.
 */
export async function wizard(
  context: CommandContext,
  dependencies: WizardDependencies,
): Promise<ExitCode> {
  const { environment, terminal } = context;
  const file = await readConfigFile(configFolder(environment));
  refuseUnusable(file);
  try {
    const answers = await ask(file, context, dependencies);
    if (answers !== undefined) return await carryOut(answers);
    terminal.note('Nothing was written.');
    return 0;
  } catch (error) {
    if (!isLeaving(error)) throw error;
    terminal.note('Cancelled: nothing was written.');
    return 130;
  }
}

/** Asks all questions. Returns undefined if the user wants nothing to be written. */
async function ask(
  file: ConfigFile | undefined,
  context: CommandContext,
  dependencies: WizardDependencies,
): Promise<Answers | undefined> {
  const stored = file !== undefined && isRecord(file.value) ? file.value : undefined;
  // saveConfig() creates the local token, so the wizard has none that it could show.
  const draft = stored ?? newDraft('');
  const none: Changes = { upstreams: [], settings: {}, removed: [], replace: true };
  const prompts = new Prompts(dependencies.streams);
  const place = { context, dependencies, prompts };
  const start: Answers = { ...place, stored, draft, changes: none, hooked: [] };
  context.terminal.note('Press Ctrl-C at any question to cancel; then nothing is written.');
  await offerRepair(start);
  if (stored !== undefined) return review(await askChanges(start));
  const provided = await askProvider(start);
  const placed = withMemory(provided, await askMemory(provided));
  const cached = withSettings(placed, await askCacheTtl(placed));
  const address = await askBusyPort(cached);
  return review(await askClientsAndImport(withSettings(cached, address)));
}

/** Asks for a provider, again and again while the user goes back. */
async function askProvider(answers: Answers): Promise<Answers> {
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- One question after the other.
    const provided = await askUpstreams(answers);
    if (provided !== undefined) return withProvided(answers, provided);
  }
}

async function askClientsAndImport(answers: Answers): Promise<Answers> {
  const wiring = await askClients(answers);
  return { ...answers, wiring, imports: answers.imports ?? (await askImport(answers)) };
}

/** Shows what will be written, and asks whether to write, change or cancel. Returns undefined for cancel. */
async function review(start: Answers): Promise<Answers | undefined> {
  const { context, prompts } = start;
  const path = configPath(configFolder(context.environment));
  let answers = start;
  for (;;) {
    context.terminal.note('');
    const lines = [...summaryOf(answers.draft, context.environment), ...plannedText(answers)];
    for (const line of lines) context.terminal.note(line);
    const choice = await prompts.select({
      message: `Write ${path}?`,
      choices: [
        { value: 'yes', name: 'Yes' },
        { value: 'change', name: 'First add another provider or change something' },
        { value: 'no', name: 'No, write nothing' },
      ] as const,
    });
    if (choice === 'yes') return answers;
    if (choice === 'no') return undefined;
    answers = await askChanges(answers);
    // A new provider may serve other clients, so ask about clients again.
    if (answers.wiring !== undefined) answers = await askClientsAndImport(answers);
  }
}

/** Describes what svc will change besides the configuration. */
function plannedText({ wiring, hooked, imports = [] }: Answers): readonly string[] {
  const titles = clientTitles(wiring?.chosen ?? []);
  return [
    ...(hooked.length === 0
      ? []
      : [`  Hooks      svc will add its hooks to ${listText(clientTitles(hooked))}`]),
    ...(titles.length === 0
      ? []
      : [`  Clients    svc will change the settings of ${listText(titles)}`]),
    ...(imports.length === 0 ? [] : ['  Sessions   svc will import them as memories']),
  ];
}

async function carryOut(answers: Answers): Promise<ExitCode> {
  const { context, changes, wiring, hooked, imports = [] } = answers;
  const saved = await saveConfig({ ...changes, hooksAlone: hooked.length > 0 }, context);
  const chosen = wiring ?? { offered: [], chosen: [] };
  const { wired, failed } = await wireClients({ ...chosen, hooked }, context);
  for (const client of imports) {
    // oxlint-disable-next-line no-await-in-loop -- One store, one writer.
    await importTranscripts({ client, options: { yes: true } }, context);
  }
  if (upstreamNames(saved).length > 0) context.terminal.note(BOUND_NOTE);
  noteNext(saved, context.terminal, wired);
  return failed === 0 ? 0 : 1;
}

/** Offers to make svc's files private if others may read them. A yes takes effect at once. */
async function offerRepair({ context, prompts }: Answers): Promise<void> {
  const loose = await looseModes(context.environment);
  if (loose.length === 0) return;
  for (const one of loose) context.terminal.warn(`${looseText(one)}.`);
  if (await prompts.confirm({ message: 'Make it private now?' })) await fixModes(context);
}

async function askChanges(start: Answers): Promise<Answers> {
  const { terminal, environment } = start.context;
  let answers = start;
  for (const line of summaryOf(answers.draft, environment)) terminal.note(line);
  for (;;) {
    const names = upstreamNames(answers.draft);
    const choice = await answers.prompts.select({
      message: 'What do you want to change?',
      choices: [
        { value: 'upstream', name: 'Add or change a provider' },
        ...(names.length === 0 ? [] : [{ value: 'remove', name: 'Remove a provider' } as const]),
        { value: 'clients', name: 'Which clients use svc' },
        { value: 'import', name: 'Import earlier sessions' },
        { value: 'memory', name: 'Where memories are stored' },
        { value: 'address', name: 'Address and port' },
        { value: 'modes', name: 'Modes and budgets' },
        { value: 'done', name: 'Finish: show the summary and write' },
      ] as const,
    });
    if (choice === 'done') return answers;
    answers = await changeOf(choice, answers);
  }
}

type ChangeName = 'upstream' | 'remove' | 'clients' | 'import' | 'memory' | 'address' | 'modes';

async function changeOf(name: ChangeName, answers: Answers): Promise<Answers> {
  switch (name) {
    case 'upstream':
      return withProvided(answers, (await askUpstreams(answers)) ?? { upstreams: [] });
    case 'remove':
      return dropUpstream(answers);
    case 'clients': {
      // The user wants to answer this question again, so forget which clients were offered.
      const { wiring: _, ...unasked } = answers;
      const wiring = await askClients(unasked);
      if (wiring.offered.length === 0) answers.context.terminal.note(NO_CLIENT);
      return { ...answers, wiring };
    }
    case 'import':
      return { ...answers, imports: await askImport(answers) };
    case 'memory':
      return withMemory(answers, await askMemory(answers));
    case 'address':
      return withSettings(answers, await askAddress(answers));
    case 'modes':
      return withSettings(answers, await askModes(answers));
  }
}

const NO_CLIENT = 'No installed client can use these providers.';

/** Adds a provider, or a client's hooks, to the answers. A client that could use both uses what was added last. */
function withProvided(answers: Answers, { upstreams, hooked }: Provided): Answers {
  const others = answers.hooked.filter(
    (login) =>
      login !== hooked && !upstreams.some(({ apiStyle }) => apiStyle === LOGIN_STYLES[login]),
  );
  return {
    ...answers,
    hooked: hooked === undefined ? others : [...others, hooked],
    draft: upstreams.reduce(putUpstream, answers.draft),
    changes: { ...answers.changes, upstreams: [...answers.changes.upstreams, ...upstreams] },
  };
}

async function dropUpstream(answers: Answers): Promise<Answers> {
  const choices = upstreamNames(answers.draft).map((name) => ({ value: name, name }));
  const back = { value: '', name: 'None' };
  const name = await answers.prompts.select({ message: 'Which one?', choices: [...choices, back] });
  if (name === '') return answers;
  const { changes } = answers;
  const isStored = upstreamNames(answers.stored ?? {}).includes(name);
  return {
    ...answers,
    draft: removeUpstreams(answers.draft, name).draft,
    changes: {
      ...changes,
      upstreams: changes.upstreams.filter((one) => one.name !== name),
      removed: isStored ? [...new Set([...changes.removed, name])] : changes.removed,
    },
  };
}

function withSettings(answers: Answers, settings: Draft): Answers {
  return {
    ...answers,
    draft: putProxySettings(answers.draft, settings),
    changes: { ...answers.changes, settings: { ...answers.changes.settings, ...settings } },
  };
}

function withMemory(answers: Answers, memory: Draft | undefined): Answers {
  if (memory === undefined) return answers;
  return {
    ...answers,
    draft: { ...answers.draft, memory },
    changes: { ...answers.changes, memory },
  };
}

/** Says whether an error means that the user pressed Ctrl-C, or that the input has ended. */
function isLeaving(error: unknown): boolean {
  return error instanceof Error && ['ExitPromptError', 'AbortPromptError'].includes(error.name);
}

/** Deadline of counting sessions, in milliseconds, while the user waits. Reading those of a year takes minutes. */
const SURVEY_MS = 5_000;
/** Bound on the projects that the survey names. */
const PROJECTS_MAX = 3;
const TITLES: Readonly<Record<TranscriptClient, string>> = {
  'claude-code': 'Claude Code',
  codex: 'Codex',
  opencode: 'opencode',
  copilot: 'Copilot CLI',
  pi: 'pi',
  qwen: 'Qwen Code',
  gemini: 'Gemini CLI',
  continue: 'Continue',
  cline: 'Cline',
};

/** Asks whether to import earlier sessions as memories, if there are any. Returns the clients to import from. */
async function askImport(answers: Answers): Promise<readonly TranscriptClient[]> {
  const { context, draft } = answers;
  const survey = await surveySessions(context, SURVEY_MS);
  if (survey.clients.length === 0) return [];
  const memory = isRecord(draft['memory']) ? draft['memory'] : {};
  const isHosted = memory['kind'] === 'hosted';
  const preview = await previewLines(survey.sample, storedSettings(draft), context);
  for (const line of [...surveyLines(survey), ...preview]) context.terminal.note(line);
  if (isHosted) context.terminal.note('svc will send them to the memory service.');
  const message = `Import ${count(survey.sessions, 'session')} as memories?`;
  // The default answer must not send anything to another machine.
  const isWanted = await answers.prompts.confirm({ message, default: !isHosted });
  return isWanted ? survey.clients : [];
}

function surveyLines(survey: SessionSurvey): readonly string[] {
  const { clients, sessions, memories, masked, projects, isPartial } = survey;
  const least = isPartial ? 'at least ' : '';
  const titles = listText(clients.map((client) => TITLES[client]));
  const names = projects.slice(0, PROJECTS_MAX).join(', ');
  const more = projects.length > PROJECTS_MAX ? ` and ${projects.length - PROJECTS_MAX} more` : '';
  return [
    `Found ${least}${count(sessions, 'session')} of ${titles} in ${count(projects.length, 'project')} (${names}${more}): ${least}${memories} memories.`,
    `Secrets are masked (${least}${masked} in these). svc does not import reasoning, tool output and system prompts.`,
  ];
}
