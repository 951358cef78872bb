import type { Command } from 'commander'
import { variable } from './environment.ts'
import { UsageError } from './exit.ts'

/** Options of a command whose service can have a model. */
export interface ModelFlags {
  readonly modelUrl?: string
  readonly model?: string
}

/** Adds `--model-url` and `--model`. */
export function addModelOptions(command: Command): Command {
  return command
    .option(
      '--model-url <url>',
      'OpenAI-compatible interface whose model writes the answers, such as http://127.0.0.1:11434/v1 (default: answers are extracted)',
    )
    .option('--model <name>', 'name of the model; its key, if it needs one, is RIVULET_MODEL_KEY')
}

/** The setting `model` of a service; empty without the options. */
export function modelSetting({ modelUrl: url, model: name }: ModelFlags) {
  if (url === undefined && name === undefined) return {}
  if (url === undefined || name === undefined) throw new UsageError('--model-url and --model go together')
  const apiKey = variable('RIVULET_MODEL_KEY')
  return { model: { url, name, ...(apiKey !== undefined && { apiKey }) } }
}
