BEGIN TRANSACTION;
CREATE TABLE events (
	id INTEGER NOT NULL, 
	at DATETIME NOT NULL, 
	kind VARCHAR(32) NOT NULL, 
	public BOOLEAN NOT NULL, 
	team_id INTEGER, 
	submission_id INTEGER, 
	text TEXT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(team_id) REFERENCES teams (id), 
	FOREIGN KEY(submission_id) REFERENCES submissions (id)
);
INSERT INTO "events" VALUES(1,'2026-11-27 06:02:38.393988','team added',0,1,NULL,'The team Owls takes part.');
INSERT INTO "events" VALUES(2,'2026-11-27 06:02:38.398759','team added',0,2,NULL,'The team Larks takes part.');
INSERT INTO "events" VALUES(3,'2026-11-27 06:02:38.400570','team added',0,3,NULL,'The team Wrens takes part.');
INSERT INTO "events" VALUES(4,'2026-11-27 06:02:38.401917','token revoked',0,3,NULL,'The team Wrens may submit nothing more.');
INSERT INTO "events" VALUES(5,'2026-11-01 00:00:00.000000','received',1,1,1,'Submission 1 of Owls (Blue Team): received.');
INSERT INTO "events" VALUES(6,'2026-11-01 00:00:00.000000','received',1,2,2,'Submission 2 of Larks (Blue Team): received.');
INSERT INTO "events" VALUES(7,'2026-11-01 00:00:00.000000','received',1,2,3,'Submission 3 of Larks (Red Team): received.');
INSERT INTO "events" VALUES(8,'2026-11-27 06:02:38.429654','scored',1,1,1,'Submission 1 of Owls (Blue Team): scored, 0.037037.');
INSERT INTO "events" VALUES(9,'2026-11-27 06:02:38.437083','scored',1,2,2,'Submission 2 of Larks (Blue Team): scored, 0.028571.');
INSERT INTO "events" VALUES(10,'2026-11-27 06:02:38.440870','scored',1,2,3,'Submission 3 of Larks (Red Team): scored, 0.005102.');
INSERT INTO "events" VALUES(11,'2026-11-27 06:02:38.444580','scored',0,1,1,'Submission 1 of Owls (Blue Team): held-out scored, 0.962963.');
INSERT INTO "events" VALUES(12,'2026-11-27 06:02:38.448709','scored',0,2,2,'Submission 2 of Larks (Blue Team): held-out scored, 0.971429.');
INSERT INTO "events" VALUES(13,'2026-11-27 06:02:38.452948','scored',0,2,3,'Submission 3 of Larks (Red Team): held-out scored, 0.994898.');
INSERT INTO "events" VALUES(14,'2026-11-01 00:00:00.000000','received',1,1,4,'Submission 4 of Owls (Blue Team): received.');
INSERT INTO "events" VALUES(15,'2026-11-27 06:02:38.460801','failed',0,1,4,'Submission 4 of Owls (Blue Team): failed. OSError: a photo is missing');
INSERT INTO "events" VALUES(16,'2026-11-01 00:00:00.000000','refused',0,1,5,'Submission 5 of Owls (Blue Team): refused, /models/0 "x": is no model of the registry');
INSERT INTO "events" VALUES(17,'2026-11-01 00:00:00.000000','received',1,1,6,'Submission 6 of Owls (Red Team): received.');
INSERT INTO "events" VALUES(18,'2026-11-27 06:02:38.471601','refused',0,1,6,'Submission 6 of Owls (Red Team): refused. the rules');
INSERT INTO "events" VALUES(19,'2026-11-01 00:00:00.000000','received',1,2,7,'Submission 7 of Larks (Blue Team): received.');
INSERT INTO "events" VALUES(20,'2026-11-01 00:00:00.000000','received',1,1,8,'Submission 8 of Owls (Blue Team): received.');
INSERT INTO "events" VALUES(21,'2026-11-27 06:02:38.483334','rescored',0,1,1,'Submission 1 is scored again.');
INSERT INTO "events" VALUES(22,'2026-11-27 06:02:38.485946','frozen',1,NULL,NULL,'No submissions are taken in at present.');
CREATE TABLE facts (
	name VARCHAR(64) NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "facts" VALUES('format','1');
INSERT INTO "facts" VALUES('frozen','2026-11-27T06:02:38.485946+00:00');
CREATE TABLE scorings (
	id INTEGER NOT NULL, 
	submission_id INTEGER NOT NULL, 
	kind VARCHAR(8) NOT NULL, 
	round INTEGER NOT NULL, 
	state VARCHAR(8) NOT NULL, 
	attempt INTEGER NOT NULL, 
	queued DATETIME NOT NULL, 
	not_before DATETIME NOT NULL, 
	started DATETIME, 
	lease_until DATETIME, 
	worker VARCHAR(128), 
	ended DATETIME, 
	note TEXT NOT NULL, 
	error TEXT NOT NULL, 
	score FLOAT, 
	debiased FLOAT, 
	calibrated FLOAT, 
	low FLOAT, 
	high FLOAT, 
	document TEXT, 
	heatmap BLOB, 
	PRIMARY KEY (id), 
	UNIQUE (submission_id, kind, round), 
	FOREIGN KEY(submission_id) REFERENCES submissions (id)
);
INSERT INTO "scorings" VALUES(1,1,'public',1,'scored',1,'2026-11-01 00:00:00.000000','2026-11-01 00:00:00.000000','2026-11-27 06:02:38.424198',NULL,'worker:1','2026-11-27 06:02:38.429654','','',3.7037037037037034981e-02,1.85185185185185174905e-02,NULL,2.70370370370370330381e-02,4.70370370370370369239e-02,'{"contract_version": "1.0", "team": "blue", "score": 0.037037037037037035, "n_models": 2, "n_stimuli": 8, "mean_cka_biased": 0.037037037037037035, "mean_cka_debiased": 0.018518518518518517, "pairwise": {"names": ["owl", "lark"], "biased": [[1.0, 0.037037037037037035], [0.037037037037037035, 1.0]], "debiased": [[1.0, 0.037037037037037035], [0.037037037037037035, 1.0]]}, "digests": {"registry": "8994c1aa5b4ad4d0d1cd75591c2a663eb1b36a47fffd91be292e6848257ac839", "catalog": "749a722103a016234519d8e432be4a29e9fc4503887c70b43d3c3e8eeda0b297", "weights": {}}, "timings": {"cka_seconds": 1.0}, "extraction": {"precision": "float32", "seed": 0}}',X'504E47');
INSERT INTO "scorings" VALUES(2,1,'held_out',1,'scored',1,'2026-11-01 00:00:00.000000','2026-11-01 00:00:00.000000','2026-11-27 06:02:38.442612',NULL,'worker:1','2026-11-27 06:02:38.444580','','',0.962962962962963,1.85185185185185174905e-02,NULL,2.70370370370370330381e-02,4.70370370370370369239e-02,'{"contract_version": "1.0", "team": "blue", "score": 0.037037037037037035, "n_models": 2, "n_stimuli": 8, "mean_cka_biased": 0.037037037037037035, "mean_cka_debiased": 0.018518518518518517, "pairwise": {"names": ["owl", "lark"], "biased": [[1.0, 0.037037037037037035], [0.037037037037037035, 1.0]], "debiased": [[1.0, 0.037037037037037035], [0.037037037037037035, 1.0]]}, "digests": {"registry": "8994c1aa5b4ad4d0d1cd75591c2a663eb1b36a47fffd91be292e6848257ac839", "catalog": "749a722103a016234519d8e432be4a29e9fc4503887c70b43d3c3e8eeda0b297", "weights": {}}, "timings": {"cka_seconds": 1.0}, "extraction": {"precision": "float32", "seed": 0}}',NULL);
INSERT INTO "scorings" VALUES(3,2,'public',1,'scored',1,'2026-11-01 00:00:00.000000','2026-11-01 00:00:00.000000','2026-11-27 06:02:38.434876',NULL,'worker:1','2026-11-27 06:02:38.437083','','',2.85714285714285705364e-02,1.42857142857142852682e-02,NULL,1.85714285714285720629e-02,3.85714285714285690098e-02,'{"contract_version": "1.0", "team": "blue", "score": 0.02857142857142857, "n_models": 2, "n_stimuli": 8, "mean_cka_biased": 0.02857142857142857, "mean_cka_debiased": 0.014285714285714285, "pairwise": {"names": ["owl", "lark"], "biased": [[1.0, 0.02857142857142857], [0.02857142857142857, 1.0]], "debiased": [[1.0, 0.02857142857142857], [0.02857142857142857, 1.0]]}, "digests": {"registry": "8994c1aa5b4ad4d0d1cd75591c2a663eb1b36a47fffd91be292e6848257ac839", "catalog": "749a722103a016234519d8e432be4a29e9fc4503887c70b43d3c3e8eeda0b297", "weights": {}}, "timings": {"cka_seconds": 1.0}, "extraction": {"precision": "float32", "seed": 0}}',X'504E47');
INSERT INTO "scorings" VALUES(4,2,'held_out',1,'scored',1,'2026-11-01 00:00:00.000000','2026-11-01 00:00:00.000000','2026-11-27 06:02:38.446405',NULL,'worker:1','2026-11-27 06:02:38.448709','','',9.71428571428571419055e-01,1.42857142857142852682e-02,NULL,1.85714285714285720629e-02,3.85714285714285690098e-02,'{"contract_version": "1.0", "team": "blue", "score": 0.02857142857142857, "n_models": 2, "n_stimuli": 8, "mean_cka_biased": 0.02857142857142857, "mean_cka_debiased": 0.014285714285714285, "pairwise": {"names": ["owl", "lark"], "biased": [[1.0, 0.02857142857142857], [0.02857142857142857, 1.0]], "debiased": [[1.0, 0.02857142857142857], [0.02857142857142857, 1.0]]}, "digests": {"registry": "8994c1aa5b4ad4d0d1cd75591c2a663eb1b36a47fffd91be292e6848257ac839", "catalog": "749a722103a016234519d8e432be4a29e9fc4503887c70b43d3c3e8eeda0b297", "weights": {}}, "timings": {"cka_seconds": 1.0}, "extraction": {"precision": "float32", "seed": 0}}',NULL);
INSERT INTO "scorings" VALUES(5,3,'public',1,'scored',1,'2026-11-01 00:00:00.000000','2026-11-01 00:00:00.000000','2026-11-27 06:02:38.438919',NULL,'worker:1','2026-11-27 06:02:38.440870','','',0.00510204081632653,2.55102040816326510255e-03,NULL,-0.00489795918367347,1.51020408163265312806e-02,'{"contract_version": "1.0", "team": "red", "score": 0.00510204081632653, "n_models": 2, "n_stimuli": 8, "mean_cka_biased": 0.00510204081632653, "mean_cka_debiased": 0.002551020408163265, "pairwise": {"names": ["owl", "lark"], "biased": [[1.0, 0.00510204081632653], [0.00510204081632653, 1.0]], "debiased": [[1.0, 0.00510204081632653], [0.00510204081632653, 1.0]]}, "digests": {"registry": "8994c1aa5b4ad4d0d1cd75591c2a663eb1b36a47fffd91be292e6848257ac839", "catalog": "749a722103a016234519d8e432be4a29e9fc4503887c70b43d3c3e8eeda0b297", "weights": {}}, "timings": {"cka_seconds": 1.0}, "extraction": {"precision": "float32", "seed": 0}}',X'504E47');
INSERT INTO "scorings" VALUES(6,3,'held_out',1,'scored',1,'2026-11-01 00:00:00.000000','2026-11-01 00:00:00.000000','2026-11-27 06:02:38.451000',NULL,'worker:1','2026-11-27 06:02:38.452948','','',9.94897959183673519234e-01,2.55102040816326510255e-03,NULL,-0.00489795918367347,1.51020408163265312806e-02,'{"contract_version": "1.0", "team": "red", "score": 0.00510204081632653, "n_models": 2, "n_stimuli": 8, "mean_cka_biased": 0.00510204081632653, "mean_cka_debiased": 0.002551020408163265, "pairwise": {"names": ["owl", "lark"], "biased": [[1.0, 0.00510204081632653], [0.00510204081632653, 1.0]], "debiased": [[1.0, 0.00510204081632653], [0.00510204081632653, 1.0]]}, "digests": {"registry": "8994c1aa5b4ad4d0d1cd75591c2a663eb1b36a47fffd91be292e6848257ac839", "catalog": "749a722103a016234519d8e432be4a29e9fc4503887c70b43d3c3e8eeda0b297", "weights": {}}, "timings": {"cka_seconds": 1.0}, "extraction": {"precision": "float32", "seed": 0}}',NULL);
INSERT INTO "scorings" VALUES(7,4,'public',1,'failed',1,'2026-11-01 00:00:00.000000','2026-11-01 00:00:00.000000','2026-11-27 06:02:38.458880',NULL,'worker:1','2026-11-27 06:02:38.460801','It could not be scored, for a reason on our side; the organisers see why, and can have it scored again.','OSError: a photo is missing',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "scorings" VALUES(8,6,'public',1,'refused',1,'2026-11-01 00:00:00.000000','2026-11-01 00:00:00.000000','2026-11-27 06:02:38.469601',NULL,'worker:1','2026-11-27 06:02:38.471601','The rules have changed since it was submitted.','the rules',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "scorings" VALUES(9,7,'public',1,'running',1,'2026-11-01 00:00:00.000000','2026-11-01 00:00:00.000000','2026-11-27 06:02:38.477776','2026-11-27 06:03:08.477776','worker:1',NULL,'','',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "scorings" VALUES(10,8,'public',1,'queue',0,'2026-11-01 00:00:00.000000','2026-11-01 00:00:00.000000',NULL,NULL,NULL,NULL,'','',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "scorings" VALUES(11,8,'held_out',1,'queue',0,'2026-11-01 00:00:00.000000','2026-11-01 00:00:00.000000',NULL,NULL,NULL,NULL,'','',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "scorings" VALUES(12,1,'public',2,'queue',0,'2026-11-27 06:02:38.483334','2026-11-27 06:02:38.483334',NULL,NULL,NULL,NULL,'','',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE submissions (
	id INTEGER NOT NULL, 
	team_id INTEGER NOT NULL, 
	track VARCHAR(8) NOT NULL, 
	"key" VARCHAR(160) NOT NULL, 
	content BLOB, 
	sha256 VARCHAR(64) NOT NULL, 
	received DATETIME NOT NULL, 
	refused TEXT, 
	is_refused BOOLEAN NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (team_id, "key"), 
	FOREIGN KEY(team_id) REFERENCES teams (id)
);
INSERT INTO "submissions" VALUES(1,1,'blue','Owls-27-blue',X'7B226D6F64656C73223A205B226F776C222C20226C61726B225D7D','180dafd715d27a8d89cc7134f89f6ee6993885558fa04673d0dce1a068243e54','2026-11-01 00:00:00.000000',NULL,0);
INSERT INTO "submissions" VALUES(2,2,'blue','Larks-35-blue',X'7B226D6F64656C73223A205B226F776C222C20226C61726B222C20227772656E225D7D','bc35913fc9f9df63a9e7a18b5b3d06a45b48dfa1013653464dbe6aafdab13430','2026-11-01 00:00:00.000000',NULL,0);
INSERT INTO "submissions" VALUES(3,2,'red','Larks-196-red',X'7B22646966666572656E74696174696E675F696D61676573223A205B7B22646174617365745F6E616D65223A20226269726473222C2022696D6167655F6964656E746966696572223A2022302E706E67227D2C207B22646174617365745F6E616D65223A20226269726473222C2022696D6167655F6964656E746966696572223A2022312E706E67227D2C207B22646174617365745F6E616D65223A20226269726473222C2022696D6167655F6964656E746966696572223A2022322E706E67227D5D7D','d700d9ea2f41515b6f0ea95383aeebdea36e8a92c2b70c65c05e60a305629e7b','2026-11-01 00:00:00.000000',NULL,0);
INSERT INTO "submissions" VALUES(4,1,'blue','Owls-29-blue',X'7B226D6F64656C73223A205B227772656E222C2022726F6F6B225D7D20','8c1925755bd3848561af5b055fbc493f1ef850436903d98e94fa0870172b98b7','2026-11-01 00:00:00.000000',NULL,0);
INSERT INTO "submissions" VALUES(5,1,'blue','Owls-24-blue',X'7B226D6F64656C73223A205B2278222C20226F776C225D7D','9793a3ffb80bf4054e44b9c530f621292616404569f1237139e109a5be644e6f','2026-11-01 00:00:00.000000','[{"pointer": "/models/0", "value": "\"x\"", "rule": "is no model of the registry"}]',1);
INSERT INTO "submissions" VALUES(6,1,'red','Owls-140-red',X'7B22646966666572656E74696174696E675F696D61676573223A205B7B22646174617365745F6E616D65223A20226269726473222C2022696D6167655F6964656E746966696572223A2022332E706E67227D2C207B22646174617365745F6E616D65223A20226269726473222C2022696D6167655F6964656E746966696572223A2022342E706E67227D5D7D','40d9797183af4807717e27ef096f3133f4751b129478232dde231d717ebac5f1','2026-11-01 00:00:00.000000','[{"pointer": "/x", "value": "1", "rule": "another rule"}]',1);
INSERT INTO "submissions" VALUES(7,2,'blue','Larks-30-blue',X'7B226D6F64656C73223A205B226C61726B222C2022726F6F6B225D7D2020','ccc2291328a4568b777f354628f185688ccd3f2595c8b56894899b0928943328','2026-11-01 00:00:00.000000',NULL,0);
INSERT INTO "submissions" VALUES(8,1,'blue','Owls-31-blue',X'7B226D6F64656C73223A205B226C61726B222C20227772656E225D7D202020','51c4ddde38ea3c512a0e92457ef17ae020d9ff912b826fc115fb3700b4d7592a','2026-11-01 00:00:00.000000',NULL,0);
CREATE TABLE teams (
	id INTEGER NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	canonical VARCHAR(256) NOT NULL, 
	token_sha256 VARCHAR(64) NOT NULL, 
	added DATETIME NOT NULL, 
	revoked DATETIME, 
	PRIMARY KEY (id), 
	UNIQUE (canonical), 
	UNIQUE (token_sha256)
);
INSERT INTO "teams" VALUES(1,'Owls','owls','a7ccc16933b7de39a0885887f2f834e28696f09f41047dd187f28ac0af555d76','2026-11-27 06:02:38.393988',NULL);
INSERT INTO "teams" VALUES(2,'Larks','larks','dc30ea75fb2eb1f3da1b80714f3e3665e392b5232ffefd6204f8ea53dce9bcf7','2026-11-27 06:02:38.398759',NULL);
INSERT INTO "teams" VALUES(3,'Wrens','wrens','6349b19fda94d68b94533a784a733dc87f37c09547224d92aabbdbf64932fc7f','2026-11-27 06:02:38.400570','2026-11-27 06:02:38.401917');
CREATE INDEX ix_submissions_team_id ON submissions (team_id);
CREATE INDEX ix_scorings_queue ON scorings (state, kind, id);
COMMIT;
