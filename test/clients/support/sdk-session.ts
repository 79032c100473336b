import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

/**
 * Calls of real SDKs, one after the other, in a process of their own, on the Node version that the SDKs ask for:
 * `node sdk-session.ts '<a list of SdkCall as JSON>'` prints the list of their texts. Imports nothing of the project.
 */
export interface SdkCall {
  readonly sdk: SdkName;
  readonly isStreamed: boolean;
  /** Holds the SDKs' node_modules. */
  readonly folder: string;
  /** Without /v1. */
  readonly baseUrl: string;
  readonly token: string;
  readonly prompt: string;
  readonly headers: Readonly<Record<string, string>>;
}

export type SdkName =
  | 'openai-chat'
  | 'openai-responses'
  | 'openai-models'
  | 'anthropic'
  | 'anthropic-count'
  | 'anthropic-models'
  | 'ai-anthropic'
  | 'ai-openai-responses'
  | 'ai-openai-chat';

// The SDKs are not dependencies of the project: these are the few shapes that are used here.
interface Client {
  readonly chat: { readonly completions: { create(body: object): Promise<unknown> } };
  readonly responses: { create(body: object): Promise<unknown> };
  readonly models: { list(): AsyncIterable<{ readonly id: string }> };
  readonly messages: {
    create(body: object): Promise<unknown>;
    stream(body: object): { finalMessage(): Promise<unknown> };
    countTokens(body: object): Promise<{ readonly input_tokens: number }>;
  };
}
type ClientClass = new (options: object) => Client;
type ModelMaker = ((model: string) => object) & { chat(model: string): object };
interface AiSdk {
  generateText(options: object): Promise<{ readonly text: string }>;
  streamText(options: object): { readonly textStream: AsyncIterable<string> };
  tool(definition: object): object;
  jsonSchema(schema: object): object;
  readonly isStepCount?: (count: number) => object;
  readonly stepCountIs?: (count: number) => object;
}

// More than any scripted plan has steps.
const STEPS_MAX = 40;
const CLAUDE = 'claude-sonnet-4-5';

const calls = JSON.parse(process.argv[2] ?? '[]') as readonly SdkCall[];
const texts: string[] = [];
// oxlint-disable-next-line no-await-in-loop -- A caller waits for each answer.
for (const call of calls) texts.push(await makeCall(call));
process.stdout.write(`${JSON.stringify(texts)}\n`);

async function makeCall(call: SdkCall): Promise<string> {
  switch (call.sdk) {
    case 'openai-chat':
      return call.isStreamed ? chatStream(call) : chat(call);
    case 'openai-responses':
      return call.isStreamed ? responsesStream(call) : responses(call);
    case 'openai-models':
      return modelIds(await openai(call));
    case 'anthropic':
      return messages(call);
    case 'anthropic-count':
      return countTokens(call);
    case 'anthropic-models':
      return modelIds(await anthropic(call));
    case 'ai-anthropic':
      return agentLoop(
        call,
        await aiModel(call, '@ai-sdk/anthropic', 'createAnthropic', (make) => make(CLAUDE)),
      );
    case 'ai-openai-responses':
      return agentLoop(
        call,
        await aiModel(call, '@ai-sdk/openai', 'createOpenAI', (make) => make('gpt-5')),
      );
    case 'ai-openai-chat':
      return agentLoop(
        call,
        await aiModel(call, '@ai-sdk/openai', 'createOpenAI', (make) => make.chat('gpt-5')),
      );
  }
}

async function chat(call: SdkCall): Promise<string> {
  const { completions } = (await openai(call)).chat;
  const answer = (await completions.create({ model: 'gpt-5', messages: asUser(call) })) as {
    choices: { message: { content: string } }[];
  };
  return answer.choices[0]?.message.content ?? '';
}

async function chatStream(call: SdkCall): Promise<string> {
  const { completions } = (await openai(call)).chat;
  const body = { model: 'gpt-5', stream: true, messages: asUser(call) };
  const chunks = (await completions.create(body)) as AsyncIterable<{
    choices: { delta?: { content?: string } }[];
  }>;
  let text = '';
  for await (const chunk of chunks) text += chunk.choices[0]?.delta?.content ?? '';
  return text;
}

/** With a plain string as input: the other form of this dialect. */
async function responses(call: SdkCall): Promise<string> {
  const client = await openai(call);
  const answer = await client.responses.create({ model: 'gpt-5', input: call.prompt });
  return (answer as { output_text: string }).output_text;
}

async function responsesStream(call: SdkCall): Promise<string> {
  const client = await openai(call);
  const body = { model: 'gpt-5', stream: true, input: asUser(call) };
  const events = (await client.responses.create(body)) as AsyncIterable<{
    type: string;
    delta?: string;
  }>;
  let text = '';
  for await (const { type, delta } of events) {
    if (type === 'response.output_text.delta') text += delta ?? '';
  }
  return text;
}

async function messages(call: SdkCall): Promise<string> {
  const client = await anthropic(call);
  const body = { model: CLAUDE, max_tokens: 2000, messages: asUser(call) };
  const thinking = { type: 'enabled', budget_tokens: 1024 };
  const message = call.isStreamed
    ? await client.messages.stream({ ...body, thinking }).finalMessage()
    : await client.messages.create(body);
  return (message as { content: { text?: string }[] }).content.at(-1)?.text ?? '';
}

async function countTokens(call: SdkCall): Promise<string> {
  const client = await anthropic(call);
  const { input_tokens } = await client.messages.countTokens({
    model: CLAUDE,
    messages: asUser(call),
  });
  return String(input_tokens);
}

async function modelIds(client: Client): Promise<string> {
  const ids: string[] = [];
  for await (const { id } of client.models.list()) ids.push(id);
  return ids.join();
}

/** The tools run here: the SDK itself goes round until the model has its last answer. */
async function agentLoop(call: SdkCall, model: object): Promise<string> {
  const ai = await load<AiSdk>(call, 'ai');
  const inputSchema = ai.jsonSchema({
    type: 'object',
    properties: { command: { type: 'string' } },
    required: ['command'],
  });
  const execute = async ({ command }: { command: string }) => `ran ${command}`;
  const options = {
    model,
    prompt: call.prompt,
    tools: { bash: ai.tool({ description: 'run a command', inputSchema, execute }) },
    stopWhen: (ai.stepCountIs ?? ai.isStepCount)?.(STEPS_MAX),
  };
  if (!call.isStreamed) return (await ai.generateText(options)).text;
  let text = '';
  for await (const piece of ai.streamText(options).textStream) text += piece;
  return text;
}

function asUser({ prompt }: SdkCall): readonly object[] {
  return [{ role: 'user', content: prompt }];
}

async function openai(call: SdkCall): Promise<Client> {
  const { default: OpenAI } = await load<{ default: ClientClass }>(call, 'openai');
  return new OpenAI({ ...sdkOptions(call, `${call.baseUrl}/v1`), defaultHeaders: call.headers });
}

async function anthropic(call: SdkCall): Promise<Client> {
  const { default: Anthropic } = await load<{ default: ClientClass }>(call, '@anthropic-ai/sdk');
  return new Anthropic({ ...sdkOptions(call, call.baseUrl), defaultHeaders: call.headers });
}

async function aiModel(
  call: SdkCall,
  packageName: string,
  maker: string,
  pick: (make: ModelMaker) => object,
): Promise<object> {
  const provider = await load<Record<string, (options: object) => ModelMaker>>(call, packageName);
  const make = provider[maker]?.({
    ...sdkOptions(call, `${call.baseUrl}/v1`),
    headers: call.headers,
  });
  if (make === undefined) throw new Error(`${packageName} has no ${maker}`);
  return pick(make);
}

function sdkOptions(call: SdkCall, baseURL: string): object {
  return { baseURL, apiKey: call.token };
}

async function load<Module>(call: SdkCall, packageName: string): Promise<Module> {
  const require = createRequire(`${call.folder}/package.json`);
  return (await import(pathToFileURL(require.resolve(packageName)).href)) as Module;
}
