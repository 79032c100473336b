import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { textProof } from '../../src/core/memory-api/canonical.ts';
import type { Memory } from '../../src/ports/memory.ts';
import { referenceOf } from '../../src/core/memory/reference.ts';
import { saidAgainTests } from './said-again.ts';
import { FACTS, outputRecordOf, questionOf, recordOf, sharedStarts } from '../support/records.ts';
import { MemoryError } from '../../src/core/errors.ts';

/** What every memory owes its callers, whatever it is made of. `isOfRequests`: nothing else may be asked of it. */
export function memorySuite(
  name: string,
  open: () => Promise<Memory> | Memory,
  { isOfRequests = false }: { readonly isOfRequests?: boolean } = {},
): void {
  describe(name, () => {
    let memory: Memory;
    const whole = (what: string, run: () => Promise<void>): void => {
      if (!isOfRequests) test(what, run);
    };
    // Far above what anything here takes: only a hang reaches it.
    const patience = (): AbortSignal => AbortSignal.timeout(30_000);
    const texts = async (humanText: string, space = 'project'): Promise<string[]> => {
      const answer = await memory.recall(questionOf(humanText, { space }), patience());
      return answer.passages.map(({ text }) => text);
    };

    beforeEach(async () => {
      memory = await open();
    });
    afterEach(() => memory.close());

    test('what was captured is recalled by a question in other words', async () => {
      const fact = recordOf('The deploy code word for project Zephyr is marmalade-42.');
      expect(await memory.capture([fact], patience())).toEqual(['stored']);
      expect(await texts('what is the deploy code word?')).toEqual([fact.text]);
    });

    test('a recalled passage says whose words it is, when, where from, and its reference', async () => {
      const fact = recordOf('The release captain is Ottoline.', { role: 'assistant' });
      await memory.capture([fact], patience());
      const { passages } = await memory.recall(questionOf('who is release captain'), patience());
      expect(passages).toEqual([
        {
          ref: expect.stringMatching(/^m_[a-z2-7]{16}$/),
          digest: fact.digest,
          space: 'project',
          role: 'assistant',
          text: fact.text,
          at: fact.at,
          client: 'test-client',
          score: expect.any(Number),
        },
      ]);
    });

    test('the right one of fifty facts comes first', async () => {
      await memory.capture(
        FACTS.map((text, exchange) => recordOf(text, { exchange, conversation: `c${exchange}` })),
        patience(),
      );
      expect((await texts('which bucket holds our terraform state?'))[0]).toContain('acme-tfstate');
      expect((await texts('how many partitions does the kafka orders topic have?'))[0]).toContain(
        'twelve partitions',
      );
    });

    test('fifty unrelated facts answer nothing', async () => {
      await memory.capture(
        FACTS.map((fact, exchange) => recordOf(fact, { exchange, conversation: `c${exchange}` })),
        patience(),
      );
      for (const text of [
        'hello',
        'hi there, thanks a lot!',
        'Please write a haiku about autumn leaves.',
        'What is the capital of Mongolia?',
        'how do I center a div with flexbox',
        'fix the bug',
        'ok',
        '',
        '???',
      ]) {
        // oxlint-disable-next-line no-await-in-loop
        expect(await texts(text), text).toEqual([]);
      }
    });

    test('what was asked in vain is found as soon as it was captured', async () => {
      await memory.capture(
        FACTS.map((text, exchange) => recordOf(text, { exchange, conversation: `c${exchange}` })),
        patience(),
      );
      expect(await texts('where is the quokka enclosure')).toEqual([]);
      await memory.capture([recordOf('The quokka enclosure is north.')], patience());
      expect(await texts('where is the quokka enclosure')).toHaveLength(1);
    });

    test('an empty memory answers nothing', async () => {
      expect(await texts('what is the deploy code word?')).toEqual([]);
    });

    whole('the same words are stored once in one space, and once more in another', async () => {
      const fact = recordOf('The canary region is Montreal.');
      const elsewhere = { ...fact, space: 'other' };
      expect(await memory.capture([fact, fact], patience())).toEqual(['stored', 'duplicate']);
      expect(await memory.capture([fact, elsewhere], patience())).toEqual(['duplicate', 'stored']);
      expect(await memory.list({ limit: 10 }, patience())).toHaveLength(2);
    });

    test('records without text, with a wrong digest or an endless text are rejected', async () => {
      const records = [
        recordOf('  \n '),
        { ...recordOf('fine'), digest: 'short' },
        recordOf('x '.repeat(300_000)),
        { ...recordOf('fine'), space: '' },
      ];
      expect(await memory.capture(records, patience())).toEqual(Array(4).fill('rejected'));
    });

    test('R25: no space sees another space, except the space global', async () => {
      const here = recordOf('The vault password hint is tangerine sunrise.', { space: 'mine' });
      const shared = recordOf('Tangerine sunrise is also the wallpaper.', { space: 'global' });
      await memory.capture([here, shared], patience());
      expect(await texts('tangerine sunrise', 'mine')).toHaveLength(2);
      expect(await texts('tangerine sunrise', 'yours')).toEqual([shared.text]);
      expect(await texts('tangerine sunrise', 'mine%')).toEqual([shared.text]);
      expect(await texts('vault password hint tangerine', 'global')).not.toContain(here.text);
    });

    whole('R25: listing and forgetting with a space leave the other spaces alone', async () => {
      const mine = recordOf('Tangerine one.', { space: 'mine' });
      const yours = recordOf('Tangerine two.', { space: 'yours' });
      await memory.capture([mine, yours], patience());
      const filter = { space: 'mine', words: 'tangerine' };
      expect(await memory.list({ ...filter, limit: 10 }, patience())).toMatchObject([mine]);
      expect(await memory.forget(filter, patience())).toBe(1);
      expect(await memory.forget({ space: 'mine' }, patience())).toBe(0);
      expect(await memory.list({ limit: 10 }, patience())).toMatchObject([yours]);
    });

    test('what the request already holds is not recalled', async () => {
      const old = recordOf('The deploy window opens at nine.', { conversation: 'a' });
      const held = recordOf('The deploy window is on Tuesday.', { conversation: 'b' });
      await memory.capture([old, held], patience());
      const question = questionOf('when is the deploy window?', { excludeDigests: [held.digest] });
      const { passages } = await memory.recall(question, patience());
      expect(passages.map(({ digest }) => digest)).toEqual([old.digest]);
    });

    test('a question that says nothing alone is understood from what the assistant said', async () => {
      const fact = recordOf('Deploys to staging go through the script named marmalade.');
      const noise = FACTS.map((text, at) =>
        recordOf(text, { exchange: at, conversation: `c${at}` }),
      );
      await memory.capture([fact, ...noise], patience());
      const question = questionOf('ok, do it', {
        assistantText: 'Shall I deploy to staging with the marmalade script?',
      });
      const { passages } = await memory.recall(question, patience());
      expect(passages[0]?.text).toBe(fact.text);
    });

    test('the answer stays within the tokens that were asked for', async () => {
      const words = (place: number): string =>
        `Zephyr rollout step ${place} needs approval number. `;
      await memory.capture(
        Array.from({ length: 40 }, (_, place) =>
          recordOf(words(place).repeat(4), { exchange: place, conversation: `c${place}` }),
        ),
        patience(),
      );
      const ask = async (tokensMax: number): Promise<number> => {
        const question = questionOf('zephyr rollout approval', { tokensMax });
        const { passages } = await memory.recall(question, patience());
        return passages.reduce((sum, { text }) => sum + text.length, 0);
      };
      // A token has at least one character, and in English about four.
      expect(await ask(128)).toBeLessThan(128 * 5);
      expect(await ask(512)).toBeGreaterThan(await ask(128));
      expect(await ask(5)).toBe(0);
    });

    whole('a stored text comes back exact, by digest and by reference', async () => {
      const text = '  Ω “quotes” \u0000 tab\t\r\n emoji 👩‍🚀 \u2028\n';
      const record = recordOf(text, { branch: 'main' });
      await memory.capture([record, recordOf('another')], patience());
      const byDigest = await memory.retrieve(record, patience());
      expect(byDigest).toMatchObject(record);
      expect(await memory.retrieve({ ref: byDigest?.ref ?? '' }, patience())).toEqual(byDigest);
      expect(await memory.retrieve({ digest: record.digest, space: 'x' }, patience())).toBe(
        undefined,
      );
      expect(await memory.retrieve({ ref: 'm_nothing' }, patience())).toBe(undefined);
    });

    whole('a record says where the last text of its answer begins', async () => {
      const before = 'The quay gateway loses its port because it trims the tail.';
      const last = 'The quay gateway kept the wrong port because `flushTail()` came late.';
      const at = { exchange: 1, fingerprint: 'f1' };
      const asked = recordOf('why does the quay gateway lose its port?', at);
      const record = recordOf(`${before}\n\n${last}`, {
        ...at,
        role: 'assistant',
        lastFrom: before.length + 2,
      });
      await memory.capture([asked, record], patience());
      expect(await memory.retrieve(record, patience())).toMatchObject(record);
    });

    whole('the beginning of a reference finds the whole ones, in their order', async () => {
      const [first, second] = sharedStarts(4);
      await memory.capture([first, second], patience());
      const [one, other] = [first, second].map(({ digest }) => referenceOf(digest)).toSorted();
      const start = one?.slice(0, 6) ?? '';
      expect(await memory.references(start, patience())).toEqual([one, other]);
      expect(await memory.references(one?.slice(0, 17) ?? '', patience())).toEqual([one]);
      expect(await memory.references('m_', patience())).toEqual([one, other]);
    });

    whole('half a character is kept as it is or not at all', async () => {
      const record = recordOf('a lone \uD83D half');
      const [state] = await memory.capture([record], patience());
      const kept = await memory.retrieve(record, patience());
      expect([state, kept?.text]).toEqual(
        state === 'rejected' ? ['rejected', undefined] : ['stored', record.text],
      );
    });

    whole('a long list of references and a long text come back whole', async () => {
      const long = recordOf(`start ${'x'.repeat(40_000)} end`);
      const others = Array.from({ length: 70 }, (_, at) => recordOf(`note ${at}`, { at: at + 1 }));
      await memory.capture([long, ...others], patience());
      const all = await memory.list({ limit: 1000 }, patience());
      expect(all).toHaveLength(71);
      expect(all.find(({ digest }) => digest === long.digest)?.text).toBe(long.text);
      const refs = all.map(({ ref }) => ref);
      const named = await memory.list({ refs, limit: 1000 }, patience());
      expect(named.map(({ ref }) => ref)).toEqual(refs);
      expect(await memory.forget({ refs }, patience())).toBe(71);
    });

    whole('a list is newest first, and filtered by role, conversation and time', async () => {
      const [first, second, third] = [
        recordOf('one', { at: 1000 }),
        recordOf('two', { at: 2000, role: 'assistant' }),
        recordOf('three', { at: 3000, conversation: 'other' }),
      ];
      await memory.capture([second, third, first], patience());
      const list = async (filter: object): Promise<string[]> =>
        (await memory.list({ limit: 10, ...filter }, patience())).map(({ text }) => text);
      expect(await list({})).toEqual(['three', 'two', 'one']);
      expect(await list({ role: 'assistant' })).toEqual(['two']);
      expect(await list({ conversation: 'other' })).toEqual(['three']);
      expect(await list({ since: 1500, until: 2500 })).toEqual(['two']);
      expect(await list({ limit: 1, offset: 1 })).toEqual(['two']);
      expect(await list({ space: 'nowhere' })).toEqual([]);
    });

    whole('a list by words holds only records with every word', async () => {
      const records = [
        recordOf('The parser reads tokens.'),
        recordOf('The parser writes nodes.'),
        recordOf('Nodes only.'),
      ];
      await memory.capture(records, patience());
      const list = async (words: string): Promise<string[]> =>
        (await memory.list({ words, limit: 10 }, patience())).map(({ text }) => text);
      expect(await list('parsers node')).toEqual(['The parser writes nodes.']);
      expect((await list('parser')).toSorted()).toEqual([records[0]?.text, records[1]?.text]);
      expect(await list('"parser" OR nodes*')).toEqual(['The parser writes nodes.']);
      expect(await list('the')).toEqual([]);
    });

    whole('what was forgotten is gone and is not captured again', async () => {
      const secret = recordOf('My locker number is 3117.');
      const other = recordOf('The locker room is green.');
      await memory.capture([secret, other], patience());
      const ref = (await memory.retrieve(secret, patience()))?.ref ?? '';
      expect(await memory.forget({ refs: [ref] }, patience())).toBe(1);
      expect(await memory.retrieve(secret, patience())).toBe(undefined);
      expect(await texts('locker number')).not.toContain(secret.text);
      expect(await memory.capture([secret, other], patience())).toEqual(['forgotten', 'duplicate']);
    });

    whole(
      'a record that two spaces hold is listed in both, and forgotten in the one that is named',
      async () => {
        const here = recordOf('The staging port is 6432.');
        const there = { ...here, space: 'global' };
        const other = recordOf('The release train leaves on Thursdays.');
        await memory.capture([here, there, other], patience());
        const ref = (await memory.retrieve(here, patience()))?.ref ?? '';
        const found = await memory.list({ refs: [ref], limit: 10 }, patience());
        expect(found.map(({ space }) => space).toSorted()).toEqual(['global', 'project']);
        expect(await memory.list({ refs: [], limit: 10 }, patience())).toEqual([]);
        expect(await memory.forget({ refs: [ref], space: 'project' }, patience())).toBe(1);
        expect(await memory.retrieve(here, patience())).toBe(undefined);
        expect((await memory.retrieve(there, patience()))?.text).toBe(there.text);
        expect(await memory.list({ limit: 10 }, patience())).toHaveLength(2);
      },
    );

    whole('forgetting by words forgets what the list with these words shows', async () => {
      const records = ['Purple invoice template.', 'Purple theme.', 'Invoice run.'].map((text) =>
        recordOf(text),
      );
      await memory.capture(records, patience());
      expect(await memory.forget({ words: 'the' }, patience())).toBe(0);
      expect(await memory.forget({ words: 'purple invoices' }, patience())).toBe(1);
      expect(await memory.list({ limit: 10 }, patience())).toHaveLength(2);
    });

    whole(
      'an output is kept once, proven by its own text, and given back word for word',
      async () => {
        const text = 'deploy log Ω\u0000\r\n  tab\t👩‍🚀\n';
        const output = outputRecordOf(text);
        expect(await memory.capture([output, output], patience())).toEqual(['stored', 'duplicate']);
        const nonce = randomBytes(32);
        const held = await memory.hold(
          { space: 'project', digests: [output.digest, 'A'.repeat(43)], nonce },
          patience(),
        );
        expect(held).toEqual([{ digest: output.digest, proof: textProof(nonce, 'tool', text) }]);
        const kept = await memory.retrieve(output, patience());
        expect(kept).toMatchObject({ ...output, role: 'tool', ref: expect.stringMatching(/^m_/) });
        expect(await memory.retrieve({ ref: kept?.ref ?? '' }, patience())).toEqual(kept);
      },
    );

    test('R25: an output is proven in its own space alone', async () => {
      const output = outputRecordOf('a build log', { space: 'mine' });
      await memory.capture([output], patience());
      const question = { digests: [output.digest], nonce: randomBytes(32) };
      expect(await memory.hold({ ...question, space: 'yours' }, patience())).toEqual([]);
      expect(await memory.hold({ ...question, space: 'mine' }, patience())).toHaveLength(1);
    });

    test('law 2: what was said is proven by its role and its own text, in its own space', async () => {
      const said = [
        recordOf('The staging port is 6432.'),
        recordOf('The staging port is 6432.', { role: 'assistant' }),
      ];
      await memory.capture(said, patience());
      const nonce = randomBytes(32);
      const digests = said.map(({ digest }) => digest);
      const question = { digests: [...digests, 'A'.repeat(43)], nonce };
      const held = await memory.hold({ ...question, space: 'project' }, patience());
      const proofs = new Map(held.map(({ digest, proof }) => [digest, proof]));
      expect(held).toHaveLength(2);
      for (const { digest, role, text } of said) {
        expect(proofs.get(digest)).toBe(textProof(nonce, role, text));
      }
      expect(await memory.hold({ ...question, space: 'yours' }, patience())).toEqual([]);
      if (isOfRequests) return;
      await memory.forget({ space: 'project' }, patience());
      expect(await memory.hold({ ...question, space: 'project' }, patience())).toEqual([]);
    });

    whole('outputs are neither recalled nor listed', async () => {
      await memory.capture([outputRecordOf('The vault code is tangerine.')], patience());
      expect(await texts('what is the vault code?')).toEqual([]);
      expect(await memory.list({ limit: 10 }, patience())).toEqual([]);
      expect(await memory.list({ limit: 10, words: 'tangerine' }, patience())).toEqual([]);
    });

    whole('a forgotten output is not held, and is not kept again', async () => {
      const [byRef, bySpace] = [outputRecordOf('one'), outputRecordOf('two', { space: 'other' })];
      await memory.capture([byRef, bySpace], patience());
      const ref = (await memory.retrieve(byRef, patience()))?.ref ?? '';
      expect(await memory.forget({ refs: [ref] }, patience())).toBe(1);
      expect(await memory.forget({ space: 'other' }, patience())).toBe(1);
      const question = { digests: [byRef.digest], space: 'project', nonce: randomBytes(32) };
      expect(await memory.hold(question, patience())).toEqual([]);
      expect(await memory.capture([byRef, bySpace], patience())).toEqual([
        'forgotten',
        'forgotten',
      ]);
    });

    saidAgainTests(() => memory, whole);

    test('outputs without text, with a wrong digest or half a character are rejected', async () => {
      const wrong = [
        outputRecordOf(''),
        { ...outputRecordOf('fine'), digest: 'short' },
        outputRecordOf('half \ud83d'),
        outputRecordOf('x '.repeat(300_000)),
      ];
      expect(await memory.capture(wrong, patience())).toEqual(Array(4).fill('rejected'));
    });

    test('R26: an output that holds a secret is rejected', async () => {
      const secret = outputRecordOf(
        'AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiCYzz12345678AB',
      );
      const states = await memory.capture([secret, outputRecordOf('port=8765')], patience());
      expect(states).toEqual(['rejected', 'stored']);
    });

    test('a signal that has fired is a MemoryError with the reason timeout', async () => {
      const asked = memory.recall(questionOf('anything'), AbortSignal.abort());
      await expect(asked).rejects.toThrowError(MemoryError);
      await expect(asked).rejects.toMatchObject({ reason: 'timeout' });
    });

    whole('a closed memory is unavailable', async () => {
      await memory.close();
      const asked = memory.recall(questionOf('anything'), patience());
      await expect(asked).rejects.toMatchObject({ reason: 'unavailable' });
    });

    test('hostile questions are answered like any other', async () => {
      await memory.capture([recordOf('The deploy code word is marmalade.')], patience());
      for (const text of [
        'deploy" OR rowid:1 NEAR(x',
        "'; DROP TABLE records; --",
        '\u0000\uFFFF\uD800',
        'a'.repeat(1_000_000),
        'NOT AND OR ( ) * ^ : {}',
        '東京'.repeat(50_000),
      ]) {
        // oxlint-disable-next-line no-await-in-loop
        expect(Array.isArray(await texts(text))).toBe(true);
      }
      expect(await texts('deploy code word')).toHaveLength(1);
    });
  });
}
