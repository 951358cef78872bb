/** Writes the JSON Schema of rule files: `npm run rules-schema`. A test compares the file with the code. */
import { writeFileSync } from 'node:fs'
import { ruleFileJsonSchema } from '../src/rules/rule-file/schema.ts'

writeFileSync('schema/rules.json', `${JSON.stringify(ruleFileJsonSchema(), undefined, 2)}\n`)
