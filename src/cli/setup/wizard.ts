import confirm from '@inquirer/confirm';
import select from '@inquirer/select';
import { type ConfigFile, configPath, readConfigFile } from '../../adapters/files/config-file.ts';
import { configFolder } from '../../adapters/files/config-folder.ts';
import {
  type Draft,
  newDraft,
  putProxySettings,
  putUpstream,
  removeUpstreams,
  upstreamNames,
} from '../../core/settings/config-draft.ts';
import { isRecord } from '../../core/bytes/json-fields.ts';
import type { ExitCode } from '../cli-error.ts';
import type { CommandContext } from '../context.ts';
import { type Changes, refuseUnusable, noteNext, saveConfig } from './setup-save.ts';
import { fixModes, looseModes } from '../doctor/doctor-fix.ts';
import { askMemory } from './wizard-memory.ts';
import type { PromptStreams, Scene, WizardParts } from './wizard-scene.ts';
import { askAddress, askModes } from './wizard-settings.ts';
import { summaryOf } from './wizard-summary.ts';
import { askUpstreams } from './wizard-upstream.ts';

/**
 * `svc setup` on a terminal: asks for what a configuration needs and writes it once, at the end.
 * Leaving earlier changes nothing. A typed key is never shown.
 */

export async function wizard(context: CommandContext, parts: WizardParts): Promise<ExitCode> {
  const { environment, terminal } = context;
  const file = await readConfigFile(configFolder(environment));
  refuseUnusable(file);
  try {
    await converse(file, context, parts);
    return 0;
  } catch (error) {
    if (!isLeaving(error)) throw error;
    terminal.note('Left: nothing was written.');
    return 130;
  }
}

async function converse(
  file: ConfigFile | undefined,
  context: CommandContext,
  parts: WizardParts,
): Promise<void> {
  const { environment, terminal } = context;
  const stored = file !== undefined && isRecord(file.value) ? file.value : undefined;
  // The token is made when the file is: what is shown until then holds none.
  const draft = stored ?? newDraft('');
  const none: Changes = { upstreams: [], settings: {}, removed: [], replace: true };
  const start: Scene = { context, parts, stored, draft, changes: none };
  terminal.note('Ctrl-C leaves at any question, and then nothing is written.');
  await offerRepair(context, parts);
  const end = stored === undefined ? await askEverything(start) : await askChanges(start);
  terminal.note('');
  for (const line of summaryOf(end.draft, environment)) terminal.note(line);
  const path = configPath(configFolder(environment));
  const isWanted = await confirm({ message: `Write ${path}?` }, parts.streams);
  if (!isWanted) {
    terminal.note('Nothing was written.');
    return;
  }
  noteNext(await saveConfig(end.changes, context), terminal);
}

/** Modes that let others in: what holds them is there already, so they need not wait for the end. */
async function offerRepair(context: CommandContext, { streams }: WizardParts): Promise<void> {
  const loose = await looseModes(context.environment);
  if (loose.length === 0) return;
  for (const { path, mode } of loose) {
    context.terminal.warn(`${path} is open to others (mode 0${mode.toString(8)}).`);
  }
  if (await confirm({ message: 'Make that private now?' }, streams)) await fixModes(context);
}

async function askEverything(start: Scene): Promise<Scene> {
  let scene = withMemory(start, await askMemory(start));
  scene = await addUpstream(scene);
  while (await confirm({ message: 'Add another provider?', default: false }, streamsOf(scene))) {
    scene = await addUpstream(scene);
  }
  scene = withSettings(scene, await askAddress(scene));
  const message = 'Change modes and budgets? (The defaults are right for most.)';
  const isAdvanced = await confirm({ message, default: false }, streamsOf(scene));
  return isAdvanced ? withSettings(scene, await askModes(scene)) : scene;
}

async function askChanges(start: Scene): Promise<Scene> {
  const { terminal, environment } = start.context;
  let scene = start;
  for (const line of summaryOf(scene.draft, environment)) terminal.note(line);
  for (;;) {
    const names = upstreamNames(scene.draft);
    const choice = await select(
      {
        message: 'What do you want to change?',
        choices: [
          { value: 'upstream', name: 'Add or change a provider' },
          ...(names.length === 0 ? [] : [{ value: 'remove', name: 'Remove a provider' } as const]),
          { value: 'memory', name: 'Where memories are' },
          { value: 'address', name: 'Address and port' },
          { value: 'modes', name: 'Modes and budgets' },
          { value: 'done', name: 'Nothing more: show and write' },
        ] as const,
      },
      streamsOf(scene),
    );
    if (choice === 'done') return scene;
    if (choice === 'upstream') scene = await addUpstream(scene);
    else if (choice === 'remove') scene = await dropUpstream(scene);
    else if (choice === 'memory') scene = withMemory(scene, await askMemory(scene));
    else if (choice === 'address') scene = withSettings(scene, await askAddress(scene));
    else scene = withSettings(scene, await askModes(scene));
  }
}

async function addUpstream(scene: Scene): Promise<Scene> {
  const upstreams = await askUpstreams(scene);
  return {
    ...scene,
    draft: upstreams.reduce(putUpstream, scene.draft),
    changes: { ...scene.changes, upstreams: [...scene.changes.upstreams, ...upstreams] },
  };
}

async function dropUpstream(scene: Scene): Promise<Scene> {
  const choices = upstreamNames(scene.draft).map((name) => ({ value: name, name }));
  const back = { value: '', name: 'None' };
  const name = await select(
    { message: 'Which one?', choices: [...choices, back] },
    streamsOf(scene),
  );
  if (name === '') return scene;
  const { changes } = scene;
  const isStored = upstreamNames(scene.stored ?? {}).includes(name);
  return {
    ...scene,
    draft: removeUpstreams(scene.draft, name).draft,
    changes: {
      ...changes,
      upstreams: changes.upstreams.filter((one) => one.name !== name),
      removed: isStored ? [...new Set([...changes.removed, name])] : changes.removed,
    },
  };
}

function withSettings(scene: Scene, settings: Draft): Scene {
  return {
    ...scene,
    draft: putProxySettings(scene.draft, settings),
    changes: { ...scene.changes, settings: { ...scene.changes.settings, ...settings } },
  };
}

function withMemory(scene: Scene, memory: Draft | undefined): Scene {
  if (memory === undefined) return scene;
  return {
    ...scene,
    draft: { ...scene.draft, memory },
    changes: { ...scene.changes, memory },
  };
}

function streamsOf({ parts }: Scene): PromptStreams {
  return parts.streams;
}

/** Ctrl-C, or an input that has ended. */
function isLeaving(error: unknown): boolean {
  return error instanceof Error && ['ExitPromptError', 'AbortPromptError'].includes(error.name);
}
