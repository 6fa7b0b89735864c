// Adds up the counts of all suites and prints the closing line. A part that failed, a suite without a result and a
// skipped test each count as one failure.
import { existsSync, readFileSync } from 'node:fs';

const [failedParts, folder, ...suites] = process.argv.slice(2);
let passed = 0;
let failed = 0;
for (const suite of suites) {
  const file = `${folder}/${suite}.json`;
  if (!existsSync(file)) {
    console.log(`${suite}: no result`);
    failed += 1;
    continue;
  }
  const result = JSON.parse(readFileSync(file, 'utf8'));
  passed += result.numPassedTests;
  failed += result.numFailedTests + result.numPendingTests;
  console.log(
    `${suite}: ${result.numPassedTests} passed, ${result.numFailedTests} failed, ${result.numPendingTests} skipped`,
  );
}
if (failed === 0) failed += Number(failedParts);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
