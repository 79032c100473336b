/** Options of `npm run bench:recall`. */
import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { InputError } from '../lib/input.mjs';

const SUITES = ['coding', 'swe', 'evidence', 'dialogues', 'silence', 'rules', 'speed'];
const HALVES = ['dev', 'test', 'all'];
const KINDS = ['chats', 'coding'];

export const USAGE = `npm run bench:recall -- [options]
  --suite a,b        only these of ${SUITES.join(', ')}; or 'ablations' alone
  --data FILE        other data for the one suite that --suite names: exchanges for coding, the folder "cases" for swe, MemoryCode for rules, else LoCoMo's form
  --labels FILE      coding: labels of readers; may be given several times
  --facts FILE       coding: patterns of the text that was needed
  --read FILE        coding: writes 30 blocks, 15 briefs, 15 second looks and 30 silences for a person to read
  --seed N           coding: which of them
  --sessions FOLDER  coding: sessions with tool outputs for the second looks, FOLDER/PROJECT/NAME.json.gz
  --quiet PERCENT    coding, swe: another share of silence
  --brief false      coding, swe: no brief
  --room TOKENS      coding, swe: another limit of all blocks of a request
  --half HALF        LoCoMo's form: ${HALVES.join(', ')}; test unless told, dev for ablations
  --sizes a,b        speed: records in the store; 1000,10000,100000 unless told
  --questions N      speed: 300 unless told
  --kind KIND        ablations: ${KINDS.join(' or ')}
  --only TEXT        ablations: the changes whose name holds TEXT
  --json FILE        all results
  --gate             exit 1 when a bar is missed
`;

export function readOptions(args = process.argv.slice(2)) {
  const values = parse(args);
  const isAblations = values.suite === 'ablations';
  const suites = isAblations ? [] : (values.suite ?? SUITES.join(',')).split(',');
  const half = values.half ?? (isAblations ? 'dev' : 'test');
  for (const suite of suites) mustBe('suite', suite, SUITES);
  mustBe('half', half, HALVES);
  if (values.kind !== undefined) mustBe('kind', values.kind, KINDS);
  if (values.seed !== undefined && !/^[1-9]\d{0,8}$/.test(values.seed)) {
    throw new InputError(`--seed is a whole number from 1 to 999999999, not ${values.seed}.`);
  }
  if (values.data !== undefined && suites.length > 1) {
    throw new InputError('--data is for one suite: name it with --suite.');
  }
  const { data, facts, labels = [] } = values;
  for (const file of [data, facts, values.sessions, ...labels]) {
    if (file !== undefined && !existsSync(file)) throw new InputError(`${file} does not exist.`);
  }
  return { ...values, suites, half, isAblations };
}

function parse(args) {
  try {
    return parseArgs({
      args,
      options: {
        suite: { type: 'string' },
        half: { type: 'string' },
        data: { type: 'string' },
        labels: { type: 'string', multiple: true },
        facts: { type: 'string' },
        read: { type: 'string' },
        seed: { type: 'string' },
        sessions: { type: 'string' },
        quiet: { type: 'string' },
        brief: { type: 'string' },
        room: { type: 'string' },
        sizes: { type: 'string', default: '1000,10000,100000' },
        questions: { type: 'string', default: '300' },
        only: { type: 'string' },
        kind: { type: 'string' },
        json: { type: 'string' },
        gate: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    }).values;
  } catch (error) {
    throw new InputError(`${error.message}\n${USAGE}`, { cause: error });
  }
}

function mustBe(what, value, known) {
  if (known.includes(value)) return;
  throw new InputError(`Unknown ${what}: ${value}. Known: ${known.join(', ')}.`);
}
