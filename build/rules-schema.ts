/** Writes the JSON Schemas of rule files and of their tests: `npm run rules-schema`. A test compares the files with the code. */
import { writeFileSync } from 'node:fs'
import { ruleFileJsonSchema } from '../src/rules/rule-file/schema.ts'
import { ruleTestsJsonSchema } from '../src/rules/rule-tests/schema.ts'

writeFileSync('schema/rules.json', `${JSON.stringify(ruleFileJsonSchema(), undefined, 2)}\n`)
writeFileSync('schema/rule-tests.json', `${JSON.stringify(ruleTestsJsonSchema(), undefined, 2)}\n`)
