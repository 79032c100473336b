import type { Command } from 'commander';
import type { CommandContext } from '../../../../src/cli/context.ts';
import type { ConsoleOptions } from '../commands/console-access.ts';
import type { ProviderAddOptions, ProviderUpdateOptions } from '../commands/service-providers.ts';
import { withConsoleOptions } from './console-options.ts';
import type { Finish } from '../../../../src/cli/program/program.ts';

/** Declares the commands around the providers of a tenant. */
export function addProviderCommands(
  service: Command,
  context: CommandContext,
  finish: Finish,
): void {
  const providers = service
    .command('providers')
    .description('Manage providers of a tenant: address, credential and models');
  addAdd(providers, context);
  addKept(providers, context);
  addProbes(providers, context, finish);
}

function addAdd(providers: Command, context: CommandContext): void {
  withProviderOptions(providers.command('add'))
    .description('Add a provider')
    .argument('<name>', '1 to 63 of a-z 0-9 and -')
    .option('--preset <id>', 'a provider of the catalog, which gives the address')
    .option('--base-url <url>', 'an https address with a public name, port 443 or 8443')
    .option(
      '--api-style <style>',
      'anthropic_messages, openai_responses or openai_chat_completions',
    )
    .option('--auth <how>', 'bearer, x-api-key or none (default: as usual for the API style)')
    .addHelpText(
      'after',
      `
Examples:
  $ svc-service providers add claude --preset anthropic --api-style anthropic_messages --model 'claude-*' \\
      --default-model claude-sonnet-4-5 --key-stdin < key.txt
  $ svc-service providers add gateway --base-url https://models.example.com \\
      --api-style openai_responses --model gpt-5 --header 'x-team: api' --key-stdin < key.txt

svc reads the credential from stdin and stores it in the vault. In a header or query value, $API_KEY
stands for the credential; such a value is then a secret too.`,
    )
    .action(async (name: string, options: ProviderAddOptions) => {
      const { addProvider } = await import('../commands/service-providers.ts');
      await addProvider(name, options, context);
    });
}

function addKept(providers: Command, context: CommandContext): void {
  withConsoleOptions(providers.command('list'))
    .description('List providers, with fingerprint and date of their credentials')
    .addHelpText('after', '\nExamples:\n  $ svc-service providers list')
    .action(async (options: ConsoleOptions) => {
      const { listProviders } = await import('../commands/service-providers.ts');
      await listProviders(options, context);
    });
  withConsoleOptions(providers.command('show'))
    .description('Show one provider without its secrets')
    .argument('<name>', 'from the list')
    .addHelpText('after', '\nExamples:\n  $ svc-service providers show claude')
    .action(async (name: string, options: ConsoleOptions) => {
      const { showProvider } = await import('../commands/service-providers.ts');
      await showProvider(name, options, context);
    });
  withProviderOptions(providers.command('update'))
    .description('Change a provider; its address and settings that you do not name stay')
    .argument('<name>', 'from the list')
    .option('--rename <name>', 'the new name')
    .option('--enable', 'use the provider')
    .option('--disable', 'keep the provider but do not use it')
    .addHelpText(
      'after',
      `
Examples:
  $ svc-service providers update claude --key-stdin < key.txt
  $ svc-service providers update gateway --model gpt-5 gpt-5-mini`,
    )
    .action(async (name: string, options: ProviderUpdateOptions) => {
      const { updateProvider } = await import('../commands/service-providers.ts');
      await updateProvider(name, options, context);
    });
  withConsoleOptions(providers.command('remove'))
    .description('Delete a provider and its secrets')
    .argument('<name>', 'from the list')
    .addHelpText('after', '\nExamples:\n  $ svc-service providers remove gateway')
    .action(async (name: string, options: ConsoleOptions) => {
      const { removeProvider } = await import('../commands/service-providers.ts');
      await removeProvider(name, options, context);
    });
}

function addProbes(providers: Command, context: CommandContext, finish: Finish): void {
  withConsoleOptions(providers.command('presets'))
    .description('List presets, which are providers of the public catalog')
    .argument('[text]', 'only presets with this text in their id or name')
    .addHelpText(
      'after',
      '\nExamples:\n  $ svc-service providers presets\n  $ svc-service providers presets mistral',
    )
    .action(async (text: string | undefined, options: ConsoleOptions) => {
      const { listPresets } = await import('../commands/service-probes.ts');
      await listPresets(text, options, context);
    });
  withConsoleOptions(providers.command('models'))
    .description('Print the models that a custom provider lists; exit 1 if it has no list')
    .argument('<name>', 'from the list')
    .addHelpText(
      'after',
      `
Examples:
  $ svc-service providers models gateway
  $ svc-service providers update gateway --model $(svc-service providers models gateway)

The catalog lists the models of a preset. If a provider has no list, name its models yourself.`,
    )
    .action(async (name: string, options: ConsoleOptions) => {
      const { fetchModels } = await import('../commands/service-probes.ts');
      finish(await fetchModels(name, options, context));
    });
  withConsoleOptions(providers.command('test'))
    .description('Send one tiny request to the default model; exit 1 when it fails')
    .argument('<name>', 'from the list')
    .addHelpText('after', '\nExamples:\n  $ svc-service providers test gateway')
    .action(async (name: string, options: ConsoleOptions) => {
      const { testProvider } = await import('../commands/service-probes.ts');
      finish(await testProvider(name, options, context));
    });
  withConsoleOptions(providers.command('fingerprint'))
    .description('Compare a credential from stdin with the saved one; exit 1 if they differ')
    .argument('<name>', 'from the list')
    .addHelpText('after', '\nExamples:\n  $ svc-service providers fingerprint claude < key.txt')
    .action(async (name: string, options: ConsoleOptions) => {
      const { compareCredential } = await import('../commands/service-probes.ts');
      finish(await compareCredential(name, options, context));
    });
}

function withProviderOptions(command: Command): Command {
  return withConsoleOptions(command)
    .option('--model <name...>', 'the models that it serves; the last character may be *')
    .option(
      '--default-model <name>',
      'model for requests that name none (default: the first of --model)',
    )
    .option('--header <pair...>', 'additional headers, as NAME: VALUE')
    .option('--query <pair...>', 'additional query values, as NAME=VALUE')
    .option('--key-stdin', 'read the credential from stdin');
}
