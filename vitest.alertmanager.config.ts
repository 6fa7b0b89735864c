import { suite } from './vitest.suites.ts';

export default suite('alertmanager');
