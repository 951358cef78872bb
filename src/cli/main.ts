#!/usr/bin/env node
// Every other import is behind the check: an old Node must be able to read all that this file brings along.
import { readFileSync } from 'node:fs'
import { nodeVersionProblem } from './node-version.ts'

const problem = nodeVersionProblem(process.versions.node, readEngines())
if (problem === undefined) {
  import('./command.ts').then(({ main }) => main())
} else {
  process.stderr.write(`rivulet: ${problem}\n`)
  process.exitCode = 2
}

/** The Node versions that package.json asks for. The file is nearer to the sources than to what is built from them. */
function readEngines(): string {
  const paths = ['../../package.json', '../../../package.json']
  for (const path of paths) {
    try {
      return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')).engines.node
    } catch {
      // The next one, then.
    }
  }
  return '*'
}
