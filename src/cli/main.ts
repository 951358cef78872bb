#!/usr/bin/env node
// All other imports follow the check, since an old Node must be able to parse the imports of this file.
import { readFileSync } from 'node:fs'
import { nodeVersionProblem } from './node-version.ts'

const problem = nodeVersionProblem(process.versions.node, readEngines())
if (problem === undefined) {
  import('./command.ts').then(({ main }) => main())
} else {
  process.stderr.write(`rivulet: ${problem}\n`)
  // The code of `EXIT.usage`, which nothing shares with this file: what shares it would run the command when it is imported.
  process.exitCode = 2
}

/** The Node versions that package.json requires. Its path differs between the sources and the build. */
function readEngines(): string {
  const paths = ['../../package.json', '../../../package.json']
  for (const path of paths) {
    try {
      return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')).engines.node
    } catch {
      // Try the next one.
    }
  }
  return '*'
}
