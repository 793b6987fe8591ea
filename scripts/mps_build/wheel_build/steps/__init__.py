"""The steps of a build: one step, one file, one public function; a step never imports a step."""
