import type { TranscriptClient } from '../../core/memory/transcripts.ts';
import { isRecord } from '../../core/bytes/json-fields.ts';
import { count } from '../listing.ts';
import { surveySessions, type SessionSurvey } from '../memory/transcript-import.ts';
import type { Answers } from './wizard-answers.ts';
import { listText } from './wizard-clients.ts';
import { confirm } from './wizard-prompts.ts';

/** Whether the sessions that clients kept before svc become memories. */

/** A person waits for the question; a year of sessions takes minutes to read. */
const SURVEY_MS = 5_000;
const PROJECTS_MAX = 3;
const TITLES: Readonly<Record<TranscriptClient, string>> = {
  'claude-code': 'Claude Code',
  codex: 'Codex',
  opencode: 'opencode',
  copilot: 'Copilot CLI',
  pi: 'pi',
  qwen: 'Qwen Code',
  continue: 'Continue',
  cline: 'Cline',
};

/** The clients whose sessions are imported. Without sessions there is no question. */
export async function askImport(answers: Answers): Promise<readonly TranscriptClient[]> {
  const { context, dependencies, draft } = answers;
  const survey = await surveySessions(context, SURVEY_MS);
  if (survey.clients.length === 0) return [];
  const memory = isRecord(draft['memory']) ? draft['memory'] : {};
  const isHosted = memory['kind'] === 'hosted';
  for (const line of surveyLines(survey)) context.terminal.note(line);
  if (isHosted) context.terminal.note('svc will send them to the memory service.');
  const message = `Import ${count(survey.sessions, 'session')} as memories?`;
  // Nothing leaves this machine by Enter alone.
  const isWanted = await confirm({ message, default: !isHosted }, dependencies.streams);
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
