/**
 * The sets of chats for the ablations. What is stored does not depend on the numbers of the ranking, so
 * the unchanged product stores each set once. Every changed build then asks a copy of that store in this
 * thread, through the `Store` that the product's worker serves: a worker would add two changes of threads
 * to each question, and on a busy machine those take longer than the recall.
 */
import { cpSync } from 'node:fs';
import { buildProduct, makeStoreFolder, withStoreIn } from '../lib/product.mjs';
import { readDialogues } from './dialogues.mjs';
import { capture, evidenceFrom } from './evidence.mjs';
import { DATA_FILE, readConversations } from './locomo.mjs';
import { silenceOf } from './silence.mjs';

/** `source`: sets of one source have the same questions, so they are left out together. */
export async function prepareChats(entries, { half, data }) {
  const sets = [
    {
      name: 'LoCoMo',
      source: 'LoCoMo',
      conversations: readConversations({ half, areRolesTold: false, file: data }),
    },
    {
      name: 'LoCoMo, roles told',
      source: 'LoCoMo',
      conversations: readConversations({ half, areRolesTold: true, file: data }),
    },
    { name: 'dialogues', source: 'dialogues', conversations: readDialogues() },
  ].filter(({ conversations }) => conversations !== undefined);
  if (sets.length === 1) process.stdout.write(`LoCoMo: SKIPPED, ${DATA_FILE} is not there.\n`);
  const { modules, remove } = await buildProduct(entries);
  const folders = [];
  try {
    for (const set of sets) {
      const made = makeStoreFolder();
      folders.push(made);
      set.folder = made.folder;
      await withStoreIn(made.folder, modules, ({ memory }) => capture(memory, set.conversations));
    }
  } finally {
    remove();
  }
  return { sets, remove: () => folders.forEach((made) => made.remove()) };
}

/**
 * In per cent, by set. Values are chosen by the evidence less the strangers' questions that get an answer.
 * `asAgent`: asked as a coding agent asks, without gate and brief, so that lines of exchanges answer.
 */
export async function measureChats(modules, sets, { asAgent = false }) {
  const figures = {};
  for (const { name, conversations, folder } of sets) {
    figures[name] = await withStoreHere(modules, folder, async (store) => {
      const memory = asAgent ? asAnAgent(store, conversations) : store;
      const asked = { memory, countsTokens: false };
      const { share, reciprocal } = await evidenceFrom(modules, conversations, asked);
      const { foreign, prompts } = await silenceOf(modules, conversations, memory);
      return {
        score: 100 * (share - foreign),
        evidence: 100 * share,
        MRR: 100 * reciprocal,
        strangers: 100 * foreign,
        prompts: 100 * prompts,
      };
    });
  }
  return figures;
}

/** A copy of the store in `folder`, in this thread. */
async function withStoreHere({ inside, descriptors }, prepared, work) {
  const { folder, remove } = makeStoreFolder();
  cpSync(prepared, folder, { recursive: true });
  const store = new inside.Store({
    folder,
    descriptors: new descriptors.Descriptors(),
    report: (line) => process.stderr.write(`# ${line}\n`),
  });
  try {
    return await work({ recall: (question) => store.call('recall', question) });
  } finally {
    await store.call('close');
    remove();
  }
}

const AGENT = { conversation: '', branch: '', quietShare: 0, briefTokensMax: 0 };

/** Gives each quoted line as a passage of the record that says it. */
function asAnAgent(store, conversations) {
  const recordsIn = new Map(conversations.map(({ space, records }) => [space, records]));
  const passageOf = (space, { role, text }, at) => {
    const words = text.replace(/…$/, '').split('\n')[0];
    const holds = (one) => one.role === role && one.text.includes(words);
    const record = recordsIn.get(space).find(holds);
    return record === undefined ? [] : [{ ...record, text, at }];
  };
  return {
    async recall(question) {
      const { exchanges } = await store.recall({ ...question, agent: AGENT });
      const passages = exchanges.flatMap(({ space, quotes, at }) =>
        quotes.flatMap((quote) => passageOf(space, quote, at)),
      );
      return { passages };
    },
  };
}
