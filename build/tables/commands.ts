import type { Command } from 'commander'
import { createProgram } from '../../src/cli/program.ts'
import { cell } from './interfaces.ts'

/** Options that many commands have, and which the page describes once. */
const COMMON = new Set(['--json', '--verbose', '--base-url'])

/** The commands that do something, in the order of the help. */
export function leavesOf(command: Command): readonly Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf)
}

/** The name of a command with that of its group: `log read`. */
export function nameOf(command: Command): string {
  const { parent } = command
  return parent?.parent ? `${parent.name()} ${command.name()}` : command.name()
}

/** A section for each command, with its options in the words of its help. */
export function commandTables(): string {
  return leavesOf(createProgram(new AbortController().signal)).map(sectionOf).join('\n\n')
}

function sectionOf(command: Command): string {
  const values = command.usage().replace('[options]', '').trim()
  const heading = `### \`${`rivulet ${nameOf(command)} ${values}`.trim()}\``
  const help = command.createHelp()
  const rows = command.options
    .filter(({ long }) => !COMMON.has(long ?? ''))
    .map((option) => [
      `\`${option.flags}\`${option.mandatory ? ', required' : ''}`,
      help.optionDescription(option),
    ])
    .map((row) => `| ${row.map(cell).join(' | ')} |`)
  if (rows.length === 0) return `${heading}\n\nNo options of its own.`
  return [heading, '', '| Option | Meaning |', '| --- | --- |', ...rows].join('\n')
}
